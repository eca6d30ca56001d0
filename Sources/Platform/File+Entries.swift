import Glibc

/// One name in a folder.
package struct FolderEntry: Sendable {
  /// What a name leads to, as far as the folder tells; a symlink is not followed.
  package enum Kind: Sendable {
    case file
    case folder
    /// A symlink, a socket, a device.
    case other
    /// The file system does not tell (DT_UNKNOWN): fstatat(2) does.
    case unknown
  }

  /// Without a slash.
  package let name: ByteString
  /// Read from `d_type`, without another system call.
  package let kind: Kind
}

extension File {
  /// What this open folder holds, without `.` and `..`, in the order of readdir(3).
  ///
  /// - Throws: `Errno`; ENOTDIR where this is no folder.
  package func entries() throws(Errno) -> [FolderEntry] {
    // The stream owns a descriptor of its own, since closing it closes the descriptor.
    let copy = try check { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
    guard let stream = fdopendir(copy) else {
      let error = Errno.last
      _ = Glibc.close(copy)
      throw error
    }
    defer { closedir(stream) }
    // A duplicate shares its position with this descriptor, which may have been read before.
    rewinddir(stream)
    var entries: [FolderEntry] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw .last }
        return entries
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { ByteString(cString: $0) }
      }
      if name == "." || name == ".." { continue }
      let kind: FolderEntry.Kind =
        switch Int(entry.pointee.d_type) {
        case Int(DT_REG): .file
        case Int(DT_DIR): .folder
        case Int(DT_UNKNOWN): .unknown
        default: .other
        }
      entries.append(FolderEntry(name: name, kind: kind))
    }
  }
}

extension Directory {
  /// The names in a folder beneath this one, without `.` and `..`, in no order.
  ///
  /// - Throws: `Errno`, as `open`.
  package func names(in path: ByteString = ".") throws(Errno) -> [ByteString] {
    try open(path, O_RDONLY | O_DIRECTORY).entries().map(\.name)
  }
}
