package import Platform

/// How the names of files become keys of a store that takes only part of ASCII, and back.
///
/// With `encode`, every byte that the store refuses is written as `=XX` (two hexadecimal digits,
/// capitals), and every other byte stands for itself: `ü` is `=C3=BC`. A name that itself holds
/// such a sequence, such as `=C3`, gets one `3D` after its `=`: `=3DC3`, and each further `3D`
/// stands for one more. Names (all byte strings) and keys (all strings the store takes) are so
/// matched one to one: `decode(encode(name)) == name`, and `encode(decode(key)) == key` for every
/// key that the store takes. A key without such a sequence is its own name, a lone `=` included.
///
/// `/` and hexadecimal digits stand for themselves, so a path may be encoded whole or in segments,
/// and decoding never makes a `/` or a `.`.
package enum KeyEncoding: String, Sendable, CaseIterable {
  /// Bytes that the store refuses are written as `=XX`.
  case encode
  /// Names are keys; a name that the store refuses has none.
  case strict

  /// The key for a name, or nil when the name can have none (`strict` alone).
  package func encode(_ name: ByteString) -> ByteString? {
    if self == .strict {
      return name.bytes.allSatisfy(Self.isTaken) ? name : nil
    }
    let bytes = name.bytes
    var key: [UInt8] = []
    key.reserveCapacity(bytes.count)
    for (index, byte) in bytes.enumerated() {
      if !Self.isTaken(byte) {
        key.append(Self.mark)
        key.append(Self.digits[Int(byte >> 4)])
        key.append(Self.digits[Int(byte & 15)])
      } else {
        key.append(byte)
        if byte == Self.mark, Self.sequence(bytes, at: index) != nil { key += Self.doubled }
      }
    }
    return ByteString(key)
  }

  /// The name for a key. Every key has one; what is no sequence stands for itself.
  package func decode(_ key: ByteString) -> ByteString {
    guard self == .encode else { return key }
    let bytes = key.bytes
    var name: [UInt8] = []
    name.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      guard bytes[index] == Self.mark, let sequence = Self.sequence(bytes, at: index) else {
        name.append(bytes[index])
        index += 1
        continue
      }
      if sequence.doublings == 0 {
        name.append(sequence.byte)
      } else {
        name.append(Self.mark)
        name += bytes[(index + 3)..<sequence.end]
      }
      index = sequence.end
    }
    return ByteString(name)
  }

  /// Whether the store takes this byte in a key.
  ///
  /// The server's rule for keys: `^[A-Za-z0-9_/!.*'() &$=@;:+,?-]*$`.
  package static func isTaken(_ byte: UInt8) -> Bool { taken[Int(byte)] }

  private static let taken: [Bool] = {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    let bytes = Set((letters + "_/!.*'() &$=@;:+,?-").utf8)
    return (0...UInt8.max).map { bytes.contains($0) }
  }()
  private static let mark = UInt8(ascii: "=")
  private static let doubled = Array("3D".utf8)
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// `=`, any number of `3D`, and the two digits of a byte that the store refuses.
  private static func sequence(_ bytes: [UInt8], at start: Int) -> (
    doublings: Int, byte: UInt8, end: Int
  )? {
    var doublings = 0
    var index = start + 1
    while index + 1 < bytes.count, let high = value(bytes[index]),
      let low = value(bytes[index + 1])
    {
      let byte = high << 4 | low
      index += 2
      if byte == mark {
        doublings += 1
      } else {
        return isTaken(byte) ? nil : (doublings, byte, index)
      }
    }
    return nil
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
