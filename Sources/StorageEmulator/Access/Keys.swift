import Glibc
import Platform

/// The secret of a project and the keys that follow from it; the same for a data folder for ever.
struct Keys: Sendable {
  let secret: [UInt8]
  /// The legacy key of the anon role, a token without an end that matters.
  let anon: String
  /// The legacy key of the service role, which passes every policy by.
  let service: String
  /// The new keys; only a gateway understands them.
  let publishable: String
  let secretKey: String

  /// - Parameter data: the folder that keeps the secret; nil makes one for this process.
  init(data: String?) throws(Errno) {
    secret = try Self.secret(data)
    anon = Self.token("anon", secret)
    service = Self.token("service_role", secret)
    let mark = String(Digest.hex(.sha256, of: secret).prefix(24))
    publishable = "sb_publishable_" + mark
    secretKey = "sb_secret_" + mark
  }

  private static func secret(_ data: String?) throws(Errno) -> [UInt8] {
    guard let data else { return Array(Identifier.hex(Identifier.random(32)).utf8) }
    let path = data + "/secret"
    do throws(Errno) {
      let secret = try File.contents(of: path)
      if !secret.isEmpty { return secret }
    } catch {
      if error != .noEntry { throw error }
    }
    let secret = Array(Identifier.hex(Identifier.random(32)).utf8)
    try File.replace(path, with: secret)
    return secret
  }

  private static func token(_ role: String, _ secret: [UInt8]) -> String {
    Token.sign(
      [
        "iss": "supabase", "ref": "emulator", "role": .string(role), "iat": 1_700_000_000,
        "exp": 4_102_444_800,
      ], secret: secret)
  }
}
