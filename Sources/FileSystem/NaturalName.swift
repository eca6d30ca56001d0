import Platform

/// A name as people order it: numbers by their value, letters without regard to case.
struct NaturalName: Comparable {
  /// Runs of digits as their length without leading zeros, then themselves, so that comparing
  /// bytes compares values; other bytes after a mark that keeps them apart.
  private let key: [UInt8]

  init(_ name: ByteString) {
    var key: [UInt8] = []
    var rest = name.bytes[...]
    while let byte = rest.first {
      guard Self.isDigit(byte) else {
        let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
        key.append(isUpper ? byte | 0x20 : byte)
        rest = rest.dropFirst()
        continue
      }
      let digits = rest.prefix(while: Self.isDigit)
      let value = digits.drop { $0 == UInt8(ascii: "0") }
      // Names have at most 255 bytes.
      key += [UInt8(ascii: "0"), UInt8(clamping: value.count)] + value
      rest = rest.dropFirst(digits.count)
    }
    self.key = key
  }

  static func < (left: NaturalName, right: NaturalName) -> Bool {
    left.key.lexicographicallyPrecedes(right.key)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
