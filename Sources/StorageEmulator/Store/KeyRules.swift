import Platform

/// Which names the server takes (its src/storage/limits.ts).
enum KeyRules {
  private static let signs = Set("_!.*'() &$=@;:+,?-".utf8)

  static func allowsKey(_ key: ByteString, refusesDots: Bool) -> Bool {
    guard !key.isEmpty, key.bytes.allSatisfy({ isPlain($0) || $0 == ByteString.slash }) else {
      return false
    }
    return !refusesDots
      || !key.split(at: ByteString.slash).contains { $0 == "." || $0 == ".." }
  }

  static func allowsBucket(_ name: String) -> Bool {
    (1...100).contains(name.utf8.count) && name.utf8.allSatisfy(isPlain)
  }

  /// Making a bucket asks for more than using one.
  static func allowsNewBucket(_ name: String) -> Bool {
    allowsBucket(name) && name.first != " " && name.last != " " && !name.hasSuffix("--table-s3")
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: signs.contains(byte)
    }
  }
}
