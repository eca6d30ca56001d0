package import BucketStore
import Glibc
import Platform

/// What a file is called that is stored beside the one which another writer stored first:
/// `name (conflict 2026-11-30 14.05 host).ext`.
package struct ConflictNames: Sendable {
  /// This device, in ASCII letters, digits and hyphens, which every store takes.
  let host: String
  /// How keys stand for names; nil where they are the same.
  let encoding: KeyEncoding?

  /// - Parameters:
  ///   - host: a name for this device; what no key can hold is left out.
  ///   - encoding: how keys stand for names; nil where they are the same.
  package init(host: String = Self.hostName, encoding: KeyEncoding? = nil) {
    let letters = host.utf8.filter { byte in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
        true
      default: false
      }
    }.prefix(Self.longestHost)
    self.host = letters.isEmpty ? "device" : String(decoding: Array(letters), as: UTF8.self)
    self.encoding = encoding
  }

  private static let longestHost = 20
  /// The most bytes in a name (NAME_MAX).
  private static let longestName = 255
  /// What is longer than this behind the last dot is no extension.
  private static let longestExtension = 32

  /// The first part of the host's name (gethostname(2)).
  package static var hostName: String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard gethostname(&buffer, buffer.count - 1) == 0 else { return "" }
    let bytes = buffer.prefix { $0 != 0 && $0 != CChar(bitPattern: UInt8(ascii: ".")) }
    return String(decoding: bytes.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The name beside another one.
  ///
  /// A name that would be too long loses characters before the mark, whole ones.
  /// - Parameters:
  ///   - number: 1 for the first name to try, 2 where that is taken, and so on.
  ///   - time: shown in this device's time zone, to the minute.
  ///   - allows: whether the store takes a key.
  /// - Returns: nil when there is no room for the mark.
  func name(
    beside object: ObjectName, number: Int, at time: Timestamp,
    allows: (ByteString) -> Bool
  ) -> ObjectName? {
    let key = object.key.bytes
    let start = key.lastIndex(of: ByteString.slash).map { $0 + 1 } ?? 0
    let segment = ByteString(key[start...])
    let (stem, ending) = Self.parts(of: encoding?.decode(segment) ?? segment)
    let count = number > 1 ? " \(number)" : ""
    let mark = Array(" (conflict \(Self.date(time)) \(host)\(count))".utf8)
    var kept = stem
    while !kept.isEmpty {
      let name = ByteString(kept + mark + ending)
      if name.count <= Self.longestName, let segment = encoding.map({ $0.encode(name) }) ?? name {
        let key = ByteString(key[..<start]) + segment
        if allows(key) { return ObjectName(bucket: object.bucket, key: key) }
      }
      kept = Self.withoutLastCharacter(kept)
    }
    return nil
  }

  /// Whether a key is of the empty object that keeps a folder, which any writer may have made.
  static func isFolderMark(_ key: ByteString) -> Bool {
    key.hasSuffix("/") || key == folderMark || key.hasSuffix("/" + folderMark)
  }

  private static let folderMark: ByteString = ".emptyFolderPlaceholder"

  /// A name cut before its extension. A dot in front makes a name hidden, and no extension.
  private static func parts(of name: ByteString) -> (stem: [UInt8], ending: [UInt8]) {
    let bytes = name.bytes
    guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, dot < bytes.count - 1,
      bytes[..<dot].contains(where: { $0 != UInt8(ascii: ".") }),
      bytes.count - dot <= longestExtension
    else { return (bytes, []) }
    return (Array(bytes[..<dot]), Array(bytes[dot...]))
  }

  /// Without the last character of UTF-8; bytes that are no UTF-8 go up to four at a time.
  private static func withoutLastCharacter(_ bytes: [UInt8]) -> [UInt8] {
    var end = bytes.count - 1
    while end > 0, bytes[end] & 0xC0 == 0x80, bytes.count - end < 4 { end -= 1 }
    return Array(bytes[..<end])
  }

  private static func date(_ time: Timestamp) -> String {
    var seconds = time.timespec.tv_sec
    var parts = tm()
    localtime_r(&seconds, &parts)
    func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let day = "\(1900 + parts.tm_year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
    return "\(day) \(two(parts.tm_hour)).\(two(parts.tm_min))"
  }
}
