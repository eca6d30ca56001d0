import Glibc
import Platform

/// How much the kernel reads ahead, which also bounds its requests.
enum ReadAhead {
  /// Raises a mount's read-ahead from the kernel's default of 128 KiB to 1 MiB.
  ///
  /// Needs root; without it the default stays, and reading is a little slower.
  static func raise(for path: String) {
    do throws(Errno) {
      guard let entry = try MountTable.entry(at: ByteString(path)) else { return }
      let file = try File("/sys/class/bdi/\(entry.device)/read_ahead_kb", O_WRONLY)
      let text = Array("\(MountOptions.maxRead / 1024)\n".utf8)
      try text.withUnsafeBufferPointer { (bytes) throws(Errno) in
        try file.write(UnsafeRawBufferPointer(bytes), at: 0)
      }
    } catch {
      Log.debug("read-ahead stays at the kernel's default: \(error)")
    }
  }
}
