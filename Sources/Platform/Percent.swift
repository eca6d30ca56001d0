/// Percent-encoding of RFC 3986: every octet except `A–Z a–z 0–9 - . _ ~` becomes `%XX`.
///
/// The only place where it is done; an object key is encoded once, on its way to the wire.
package enum Percent {
  /// Encodes one path: unreserved octets and the separating `/` stay.
  package static func encodePath(_ path: ByteString) -> String { encode(path, keeping: "/") }

  /// Encodes one query value or path segment: `/` is encoded too.
  package static func encode(_ value: ByteString) -> String { encode(value, keeping: nil) }

  private static func encode(_ value: ByteString, keeping kept: Unicode.Scalar?) -> String {
    var result: [UInt8] = []
    result.reserveCapacity(value.count + 16)
    for byte in value.bytes {
      if isUnreserved(byte) || (kept.map { UInt32(byte) == $0.value } ?? false) {
        result.append(byte)
      } else {
        result.append(UInt8(ascii: "%"))
        result.append(digits[Int(byte >> 4)])
        result.append(digits[Int(byte & 15)])
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Decodes `%XX`; `+` stays `+`.
  ///
  /// - Returns: nil when a `%` is not followed by two hexadecimal digits.
  package static func decode(_ text: some Sequence<UInt8>) -> ByteString? {
    var result: [UInt8] = []
    var iterator = text.makeIterator()
    while let byte = iterator.next() {
      guard byte == UInt8(ascii: "%") else {
        result.append(byte)
        continue
      }
      guard let high = iterator.next().flatMap(value), let low = iterator.next().flatMap(value)
      else { return nil }
      result.append(high << 4 | low)
    }
    return ByteString(result)
  }

  private static let digits = Array("0123456789ABCDEF".utf8)

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
