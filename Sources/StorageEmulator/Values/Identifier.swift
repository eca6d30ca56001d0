import CCrypto
import Platform

/// Makes identifiers: random UUIDs, UUIDs that follow from a name, and opaque secrets.
enum Identifier {
  static func uuid() -> String {
    var bytes = random(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return text(bytes)
  }

  /// Always the same UUID for the same name.
  static func uuid(for name: String) -> String {
    let digits = Array(Digest.hex(.md5, of: Array(name.utf8)).utf8)
    var bytes = stride(from: 0, to: 32, by: 2).map { index in
      UInt8(String(decoding: digits[index...(index + 1)], as: UTF8.self), radix: 16) ?? 0
    }
    bytes[6] = bytes[6] & 0x0F | 0x50
    bytes[8] = bytes[8] & 0x3F | 0x80
    return text(bytes)
  }

  /// Random bytes of OpenSSL (RAND_bytes(3)).
  static func random(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard RAND_bytes(&bytes, CInt(count)) == 1 else { preconditionFailure("no random numbers") }
    return bytes
  }

  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  private static let digits = Array("0123456789abcdef".utf8)
  private static let blank = Array("00000000-0000-0000-0000-000000000000".utf8)

  private static func text(_ bytes: [UInt8]) -> String {
    var text = blank
    var place = 0
    for byte in bytes {
      if text[place] == UInt8(ascii: "-") { place += 1 }
      text[place] = digits[Int(byte >> 4)]
      text[place + 1] = digits[Int(byte & 15)]
      place += 2
    }
    return String(decoding: text, as: UTF8.self)
  }
}
