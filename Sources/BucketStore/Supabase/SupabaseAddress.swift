/// Where a project's storage and sign-in answer.
package struct SupabaseAddress: Sendable, Equatable {
  /// The project's own address, without a slash at its end: `https://ref.supabase.co`.
  package let project: String
  /// The base of storage calls, without a slash at its end: `https://ref.supabase.co/storage/v1`.
  package let storage: String
  /// The base of sign-in calls, without a slash at its end: `https://ref.supabase.co/auth/v1`.
  package let auth: String

  /// Reads a project's address, with or without `/storage/v1` at its end.
  ///
  /// The address of direct storage, `https://ref.storage.supabase.co`, has its sign-in at
  /// `https://ref.supabase.co`.
  /// - Throws: `StoreError` of kind `unsupported` with a sentence that says what is wrong.
  package init(_ text: String) throws(StoreError) {
    var base = Substring(text)
    while base.hasSuffix("/") { base.removeLast() }
    if base.hasSuffix(Self.storagePath) { base.removeLast(Self.storagePath.count) }
    while base.hasSuffix("/") { base.removeLast() }
    guard let scheme = ["https://", "http://"].first(where: { base.lowercased().hasPrefix($0) })
    else {
      throw StoreError(
        .unsupported, "“\(text)” is no project address: it must begin with https:// or http://")
    }
    let rest = base.dropFirst(scheme.count)
    let host = rest.prefix { $0 != "/" }
    guard !host.isEmpty, rest.utf8.allSatisfy(Self.isPlain) else {
      throw StoreError(
        .unsupported,
        "“\(text)” is no project address: https://, a host and perhaps a path are wanted")
    }
    let direct = ".storage.supabase.co"
    let authHost = host.hasSuffix(direct) ? host.dropLast(direct.count) + ".supabase.co" : host
    let path = rest.dropFirst(host.count)
    project = scheme + host + path
    storage = project + Self.storagePath
    auth = scheme + authHost + path + "/auth/v1"
  }

  private static let storagePath = "/storage/v1"

  /// Neither a query nor a fragment, a user part, a space or a control character.
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte > 32 && byte < 127 && !"?#@\"<>\\^`{}|".utf8.contains(byte)
  }
}
