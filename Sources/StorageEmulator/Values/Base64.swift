/// Base64 of RFC 4648: the common alphabet with padding, and the one for URLs without.
package enum Base64 {
  private static let common = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The common alphabet, padded.
  package static func encode(_ bytes: [UInt8]) -> String {
    var result: [UInt8] = []
    result.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      var group = UInt32(bytes[start]) << 16
      if count > 1 { group |= UInt32(bytes[start + 1]) << 8 }
      if count > 2 { group |= UInt32(bytes[start + 2]) }
      for index in 0..<4 {
        let padding = index > count
        result.append(
          padding ? UInt8(ascii: "=") : common[Int(group >> UInt32(18 - 6 * index)) & 63])
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The alphabet for URLs, without padding.
  package static func encodeURL(_ bytes: [UInt8]) -> String {
    var text = encode(bytes)
    while text.utf8.last == UInt8(ascii: "=") { text.removeLast() }
    return String(
      decoding: text.utf8.map { byte in
        switch byte {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: byte
        }
      }, as: UTF8.self)
  }

  /// Decodes either alphabet, with or without padding.
  ///
  /// - Returns: nil when a character is outside both alphabets or the length cannot be.
  package static func decode(_ text: String) -> [UInt8]? {
    var digits = Array(text.utf8)
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    guard digits.count % 4 != 1 else { return nil }
    var result: [UInt8] = []
    var group: UInt32 = 0
    var bits = 0
    for digit in digits {
      guard let value = value(of: digit) else { return nil }
      group = (group << 6 | value) & 0xFF_FFFF
      bits += 6
      if bits >= 8 {
        bits -= 8
        result.append(UInt8(truncatingIfNeeded: group >> UInt32(bits)))
      }
    }
    return result
  }

  private static func value(of digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
