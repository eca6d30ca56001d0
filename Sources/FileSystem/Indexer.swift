import Glibc
import Platform

/// Programs that read whatever they find, not because somebody wants to see it: searchers' indexers
/// and makers of thumbnails. They get what they open, and nothing is fetched ahead for them.
enum Indexer {
  /// How the names of their processes begin; the kernel keeps 15 bytes of each (proc(5), comm).
  private static let names: [ByteString] = [
    "tracker-", "localsearch", "baloo", "updatedb", "recollindex", "tumblerd", "gdk-pixbuf-thum",
    "totem-video-thu", "evince-thumbnai", "ffmpegthumbnai", "thumbnail.so", "gnome-desktop-t",
  ]

  /// Whether a process is one of them.
  static func isOne(_ processID: Int32) -> Bool {
    guard processID > 0 else { return false }
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try File("/proc/\(processID)/comm", O_RDONLY).readToEnd()
    } catch {
      // It has ended, or is in another namespace: unknown, like most.
      return false
    }
    let name = ByteString(bytes)
    return names.contains { name.hasPrefix($0) }
  }
}
