import Glibc
import Platform

/// The names in a folder of the device.
enum Folder {
  /// Every name but `.` and `..`, in the order of readdir(3).
  static func names(in path: String) throws(Errno) -> [ByteString] {
    guard let folder = opendir(path) else { throw Errno.last }
    defer { closedir(folder) }
    var names: [ByteString] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { ByteString(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }
}
