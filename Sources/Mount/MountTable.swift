import Glibc
package import Platform

/// A line of /proc/self/mountinfo (proc(5)).
package struct MountEntry: Sendable, Equatable {
  /// Major and minor number of the device, such as `0:52`.
  package let device: String
  /// Where it is mounted; bytes, since a path may be anything.
  package let path: ByteString
  /// The type with its subtype, such as `fuse.bucketfs`.
  package let type: String
  /// What is mounted.
  package let source: String

  /// The user that serves a FUSE mount (`user_id`, fuse(8)); nil for other types.
  package let user: UInt32?

  /// Whether it is a mount of this program.
  package var isOurs: Bool { type == "fuse.bucketfs" }
}

/// What the kernel has mounted, without touching any mount.
package enum MountTable {
  /// Every mount of this process's namespace, in the order of mounting.
  ///
  /// - Throws: `Errno` when /proc is not there.
  package static func entries() throws(Errno) -> [MountEntry] {
    entries(of: try File("/proc/self/mountinfo", O_RDONLY).readToEnd())
  }

  /// The mounts that a text in the form of /proc/self/mountinfo lists.
  package static func entries(of text: [UInt8]) -> [MountEntry] {
    text.split(separator: UInt8(ascii: "\n")).compactMap { parse($0) }
  }

  /// The topmost mount at exactly this absolute path; nil when nothing is mounted there.
  package static func entry(at path: ByteString) throws(Errno) -> MountEntry? {
    try entries().last { $0.path == path }
  }

  static func parse(_ line: some Sequence<UInt8>) -> MountEntry? {
    let fields = Array(line).split(separator: UInt8(ascii: " "))
    // Optional fields stand between the sixth and a lone hyphen.
    guard let dash = fields.dropFirst(6).firstIndex(of: [UInt8(ascii: "-")]),
      fields.count > dash + 2
    else { return nil }
    let options = fields.count > dash + 3 ? ByteString(fields[dash + 3]) : ByteString()
    let user = options.split(at: UInt8(ascii: ",")).first { $0.hasPrefix("user_id=") }
    return MountEntry(
      device: String(decoding: fields[2], as: UTF8.self), path: unescape(fields[4]),
      type: String(decoding: fields[dash + 1], as: UTF8.self),
      source: unescape(fields[dash + 2]).description,
      user: user?.dropFirst(8).string.flatMap { UInt32($0) })
  }

  /// Decodes `\040` and its like: the kernel writes blanks and backslashes as octal numbers.
  private static func unescape(_ field: ArraySlice<UInt8>) -> ByteString {
    var result: [UInt8] = []
    var rest = field
    while let byte = rest.popFirst() {
      let digits = rest.prefix(3)
      guard byte == UInt8(ascii: "\\"), digits.count == 3,
        digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) })
      else {
        result.append(byte)
        continue
      }
      let value = digits.reduce(0) { $0 * 8 + UInt($1 & 7) }
      result.append(UInt8(truncatingIfNeeded: value))
      rest = rest.dropFirst(3)
    }
    return ByteString(result)
  }
}
