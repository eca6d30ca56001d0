import Glibc
import Platform

/// The run of the kernel that this is: what was written in it and not synced is still there.
enum Boot {
  /// The kernel's boot id (random(4)); one that never was, where it cannot be read.
  static let current: String = {
    do throws(Errno) {
      let file = try File("/proc/sys/kernel/random/boot_id", O_RDONLY)
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
        try file.read(UnsafeMutableRawBufferPointer(buffer), at: 0)
      }
      return String(decoding: bytes.prefix(count), as: UTF8.self)
        .filter { $0 != "\n" }
    } catch {
      return "unknown since \(Timestamp.now.nanoseconds)"
    }
  }()
}
