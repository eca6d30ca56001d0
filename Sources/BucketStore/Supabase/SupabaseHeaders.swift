/// The headers that every call of a project carries.
enum SupabaseHeaders {
  /// For a body of JSON.
  static let json = [(name: "Content-Type", value: "application/json")]

  /// - Parameters:
  ///   - key: read by the gateway alone, as `apikey`.
  ///   - token: the user's token, or a key that is one.
  ///   - extra: the person's own; where one names a header of ours it replaces it.
  static func identity(key: String, token: String?, extra: [(name: String, value: String)])
    -> [(name: String, value: String)]
  {
    var ours: [(name: String, value: String)] = [("X-Client-Info", "bucketfs/0.1")]
    if !key.isEmpty { ours.append(("apikey", key)) }
    if let token { ours.append(("Authorization", "Bearer \(token)")) }
    let replaced = Set(extra.map { $0.name.lowercased() })
    return ours.filter { !replaced.contains($0.name.lowercased()) } + extra
  }
}
