import Mount
import Platform

/// The mounts that this process sees, read once; reading them touches none of them.
struct Mounts: Sendable {
  /// In the order of mounting: of two at one place the later one is seen.
  let entries: [MountEntry]

  init(entries: [MountEntry]) {
    self.entries = entries
  }

  /// Reads the kernel's table.
  static func read() throws(Complaint) -> Mounts {
    do throws(Errno) {
      return Mounts(entries: try MountTable.entries())
    } catch {
      throw Complaint(.failed, "the table of mounts cannot be read: \(error)")
    }
  }

  /// The mount of ours at exactly this path; nil when there is none, or another one covers it.
  func ours(at path: ByteString) -> MountEntry? {
    guard let top = entries.last(where: { $0.path == path }), top.isOurs else { return nil }
    return top
  }

  /// Every mount of ours that no other one covers.
  var ours: [MountEntry] {
    var seen: Set<ByteString> = []
    return entries.reversed().filter { seen.insert($0.path).inserted && $0.isOurs }.reversed()
  }
}
