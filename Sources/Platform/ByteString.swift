/// The name of something as the kernel and the store know it: bytes, compared as bytes.
///
/// `String` will not do: it treats the composed and the decomposed form of `ü` as equal and repairs
/// what is not UTF-8, while both the kernel and the store tell such names apart.
package struct ByteString: Hashable, Sendable {
  /// Any bytes at all; nothing says that they are UTF-8.
  package var bytes: [UInt8]

  package init(_ bytes: [UInt8] = []) {
    self.bytes = bytes
  }

  package init(_ bytes: some Sequence<UInt8>) {
    self.bytes = Array(bytes)
  }

  package init(_ string: String) {
    bytes = Array(string.utf8)
  }

  /// The bytes of a C string, without its end mark.
  package init(cString: UnsafePointer<CChar>) {
    var end = cString
    while end.pointee != 0 { end += 1 }
    bytes = UnsafeRawBufferPointer(start: cString, count: end - cString).map { $0 }
  }

  /// Whether it has no bytes.
  package var isEmpty: Bool { bytes.isEmpty }
  /// How many bytes it has.
  package var count: Int { bytes.count }

  /// The text when the bytes are valid UTF-8, else nil.
  package var string: String? { String(validating: bytes, as: UTF8.self) }

  /// Whether it begins with the bytes of another one.
  package func hasPrefix(_ prefix: ByteString) -> Bool { bytes.starts(with: prefix.bytes) }

  /// Whether it ends with the bytes of another one.
  package func hasSuffix(_ suffix: ByteString) -> Bool {
    bytes.count >= suffix.count && bytes.suffix(suffix.count).elementsEqual(suffix.bytes)
  }

  /// All but the first bytes; empty when there are no more than these.
  package func dropFirst(_ count: Int) -> ByteString { ByteString(bytes.dropFirst(count)) }

  /// All but the last bytes; empty when there are no more than these.
  package func dropLast(_ count: Int = 1) -> ByteString { ByteString(bytes.dropLast(count)) }

  /// The pieces between separators, empty ones included: `a//b` has three at `/`.
  package func split(at separator: UInt8) -> [ByteString] {
    bytes.split(separator: separator, omittingEmptySubsequences: false).map { ByteString($0) }
  }

  /// Calls `body` with the bytes as a C string; bytes after an embedded zero are not seen by C.
  package func withCString<Result, Failure: Error>(
    _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let terminated = (bytes + [0]).map(CChar.init(bitPattern:))
    return try terminated.withUnsafeBufferPointer { (buffer) throws(Failure) -> Result in
      guard let start = buffer.baseAddress else { preconditionFailure("never empty") }
      return try body(start)
    }
  }

  /// The bytes of both, one after the other.
  package static func + (left: ByteString, right: ByteString) -> ByteString {
    ByteString(left.bytes + right.bytes)
  }

  /// What separates the segments of a path or key.
  package static let slash = UInt8(ascii: "/")
}

extension ByteString: Comparable {
  /// Bytewise order, the order of the C collation and of memcmp(3).
  package static func < (left: ByteString, right: ByteString) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }
}

extension ByteString: ExpressibleByStringLiteral {
  package init(stringLiteral value: String) {
    self.init(value)
  }
}

extension ByteString: CustomStringConvertible {
  /// Text for people and logs: control characters and bytes that are not UTF-8 as `\xNN`.
  package var description: String {
    if let text = string, !text.unicodeScalars.contains(where: { $0.value < 32 || $0.value == 127 })
    {
      return text
    }
    return bytes.map { byte in
      if byte >= 32, byte < 127 { return String(UnicodeScalar(byte)) }
      let hex = String(byte, radix: 16)
      return "\\x" + (hex.count == 1 ? "0" + hex : hex)
    }.joined()
  }
}
