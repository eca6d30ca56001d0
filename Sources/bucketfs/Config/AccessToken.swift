import FoundationEssentials

/// A user's token (RFC 7519), read but never trusted: the server is the judge of it.
enum AccessToken {
  private struct Claims: Decodable {
    let sub: String
  }

  /// Whose token it is; nil when it does not say.
  static func user(of token: Secret) -> String? {
    let parts = token.revealed.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var text = parts[1].map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
    while text.count % 4 != 0 { text.append("=") }
    guard let payload = Data(base64Encoded: String(text)) else { return nil }
    return JSON.decode(Claims.self, from: Array(payload))?.sub
  }
}
