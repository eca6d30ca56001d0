import Glibc

extension JSON {
  /// What is wrong with a text that is not JSON, and at which byte.
  package struct Malformed: Error, Sendable {
    /// The first byte that does not fit.
    package let offset: Int
  }

  /// Reads one JSON text (RFC 8259), UTF-8; nothing but white space may follow it.
  package init(reading bytes: [UInt8]) throws(Malformed) {
    var reader = Reader(bytes: bytes)
    self = try reader.value(depth: 0)
    reader.skipSpace()
    guard reader.position == bytes.count else { throw Malformed(offset: reader.position) }
  }

  private struct Reader {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) {
      self.bytes = bytes
    }

    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    var malformed: Malformed { Malformed(offset: position) }

    mutating func skipSpace() {
      while let byte = next, byte == 32 || byte == 10 || byte == 13 || byte == 9 { position += 1 }
    }

    mutating func take(_ byte: UInt8) -> Bool {
      guard next == byte else { return false }
      position += 1
      return true
    }

    mutating func value(depth: Int) throws(Malformed) -> JSON {
      guard depth < 200 else { throw malformed }
      skipSpace()
      switch next {
      case UInt8(ascii: "{"): return try object(depth: depth)
      case UInt8(ascii: "["): return try array(depth: depth)
      case UInt8(ascii: "\""): return .string(try string())
      case UInt8(ascii: "t"): return try word("true", .bool(true))
      case UInt8(ascii: "f"): return try word("false", .bool(false))
      case UInt8(ascii: "n"): return try word("null", .null)
      default: return try number()
      }
    }

    mutating func word(_ text: String, _ value: JSON) throws(Malformed) -> JSON {
      guard bytes[position...].starts(with: text.utf8) else { throw malformed }
      position += text.utf8.count
      return value
    }

    mutating func object(depth: Int) throws(Malformed) -> JSON {
      position += 1
      var members: [Member] = []
      skipSpace()
      if take(UInt8(ascii: "}")) { return .object([]) }
      repeat {
        skipSpace()
        guard next == UInt8(ascii: "\"") else { throw malformed }
        let name = try string()
        skipSpace()
        guard take(UInt8(ascii: ":")) else { throw malformed }
        members.append(Member(name, try value(depth: depth + 1)))
        skipSpace()
      } while take(UInt8(ascii: ","))
      guard take(UInt8(ascii: "}")) else { throw malformed }
      return .object(members)
    }

    mutating func array(depth: Int) throws(Malformed) -> JSON {
      position += 1
      var items: [JSON] = []
      skipSpace()
      if take(UInt8(ascii: "]")) { return .array([]) }
      repeat {
        items.append(try value(depth: depth + 1))
        skipSpace()
      } while take(UInt8(ascii: ","))
      guard take(UInt8(ascii: "]")) else { throw malformed }
      return .array(items)
    }

    mutating func number() throws(Malformed) -> JSON {
      let start = position
      while let byte = next, "+-.0123456789eE".utf8.contains(byte) { position += 1 }
      let text = String(decoding: bytes[start..<position], as: UTF8.self)
      if let whole = Int64(text) { return .integer(whole) }
      guard let value = Double(text) else { throw malformed }
      return .number(value)
    }

    mutating func string() throws(Malformed) -> String {
      position += 1
      if let plain = plainString() { return plain }
      var text: [UInt8] = []
      while let byte = next {
        position += 1
        switch byte {
        case UInt8(ascii: "\""):
          guard let string = String(validating: text, as: UTF8.self) else { throw malformed }
          return string
        case UInt8(ascii: "\\"): try escape(into: &text)
        case 0..<32: throw malformed
        default: text.append(byte)
        }
      }
      throw malformed
    }

    /// A string without escapes, which nearly all are; nil leaves the position where it was.
    mutating func plainString() -> String? {
      let start = position
      let found = bytes.withUnsafeBytes { raw -> (String, Int)? in
        guard let base = raw.baseAddress, start < raw.count,
          let quote = memchr(base + start, 34, raw.count - start)
        else { return nil }
        let count = UnsafeRawPointer(quote) - (base + start)
        guard memchr(base + start, 92, count) == nil else { return nil }
        let piece = UnsafeRawBufferPointer(start: base + start, count: count)
        guard !piece.contains(where: { $0 < 32 }) else { return nil }
        return String(validating: piece, as: UTF8.self).map { ($0, count) }
      }
      guard let found else { return nil }
      position += found.1 + 1
      return found.0
    }

    mutating func escape(into text: inout [UInt8]) throws(Malformed) {
      guard let kind = next else { throw malformed }
      position += 1
      switch kind {
      case UInt8(ascii: "n"): text.append(10)
      case UInt8(ascii: "r"): text.append(13)
      case UInt8(ascii: "t"): text.append(9)
      case UInt8(ascii: "b"): text.append(8)
      case UInt8(ascii: "f"): text.append(12)
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(kind)
      case UInt8(ascii: "u"):
        var code = try unit()
        if (0xD800..<0xDC00).contains(code), take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) {
          let low = try unit()
          guard (0xDC00..<0xE000).contains(low) else { throw malformed }
          code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw malformed }
        text.append(contentsOf: String(Character(scalar)).utf8)
      default: throw malformed
      }
    }

    mutating func unit() throws(Malformed) -> UInt32 {
      guard position + 4 <= bytes.count,
        let code = UInt32(
          String(decoding: bytes[position..<(position + 4)], as: UTF8.self), radix: 16)
      else { throw malformed }
      position += 4
      return code
    }
  }
}
