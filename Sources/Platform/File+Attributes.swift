import CLinux
import Glibc

extension File {
  /// Sets an extended attribute (fsetxattr(2)).
  ///
  /// - Throws: `Errno`; EOPNOTSUPP where the file system keeps none.
  package func setAttribute(_ name: String, _ value: [UInt8]) throws(Errno) {
    try check { bucketfs_fsetxattr(descriptor, name, value, UInt(value.count), 0) }
  }

  /// Reads an extended attribute of at most 64 KiB (fgetxattr(2)).
  ///
  /// - Throws: `Errno`; ENODATA when the file has no such attribute.
  package func attribute(_ name: String) throws(Errno) -> [UInt8] {
    var value = [UInt8](repeating: 0, count: 65_536)
    let count = try check { bucketfs_fgetxattr(descriptor, name, &value, UInt(value.count)) }
    return Array(value.prefix(count))
  }
}
