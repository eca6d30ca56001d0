import CCrypto
import Platform

/// JSON web tokens signed with HS256 (RFC 7515, RFC 7519).
enum Token {
  /// Why a token was refused; the text is the one that the server shows.
  enum Fault: String, Error {
    case malformed = "Invalid Compact JWS"
    case algorithm = "\"alg\" (Algorithm) Header Parameter value not allowed"
    case signature = "signature verification failed"
    case expired = "\"exp\" claim timestamp check failed"
  }

  static func sign(_ claims: JSON, secret: [UInt8]) -> String {
    let header: JSON = ["alg": "HS256", "typ": "JWT"]
    let signed = Base64.encodeURL(header.encoded) + "." + Base64.encodeURL(claims.encoded)
    return signed + "." + Base64.encodeURL(code(signed, secret))
  }

  /// The claims of a token whose signature and time are right; there is no clock tolerance.
  static func verify(_ token: String, secret: [UInt8], now: Timestamp) throws(Fault) -> JSON {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, let header = read(parts[0]), header.isObject,
      let signature = Base64.decode(parts[2])
    else { throw .malformed }
    guard header["alg"] == "HS256" else { throw .algorithm }
    guard signature == code(parts[0] + "." + parts[1], secret) else { throw .signature }
    guard let claims = read(parts[1]), claims.isObject else { throw .malformed }
    if let expiry = claims["exp"]?.whole, expiry <= now.unixSeconds { throw .expired }
    return claims
  }

  private static func read(_ part: String) -> JSON? {
    guard let bytes = Base64.decode(part) else { return nil }
    do throws(JSON.Malformed) {
      return try JSON(reading: bytes)
    } catch {
      return nil
    }
  }

  private static func code(_ text: String, _ secret: [UInt8]) -> [UInt8] {
    let message = Array(text.utf8)
    var result = [UInt8](repeating: 0, count: 32)
    var length: UInt32 = 0
    guard
      HMAC(
        EVP_sha256(), secret, CInt(secret.count), message, message.count, &result, &length) != nil,
      length == 32
    else { preconditionFailure("libcrypto has no HMAC-SHA256") }
    return result
  }
}
