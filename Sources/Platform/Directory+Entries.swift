import Glibc

extension Directory {
  /// The names in a folder beneath this one, without `.` and `..`, in no order (readdir(3)).
  package func names(in path: ByteString = ".") throws(Errno) -> [ByteString] {
    let folder = try open(path, O_RDONLY | O_DIRECTORY)
    // The stream owns a descriptor of its own, since closing it closes the descriptor.
    let copy = try check { fcntl(folder.descriptor, F_DUPFD_CLOEXEC, 0) }
    guard let stream = fdopendir(copy) else {
      let error = Errno.last
      _ = Glibc.close(copy)
      throw error
    }
    defer { closedir(stream) }
    var names: [ByteString] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw .last }
        return names
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { ByteString(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
  }

  /// Removes an empty folder beneath this one.
  package func removeFolder(_ path: ByteString) throws(Errno) {
    let (parent, name) = Self.parts(of: path)
    let folder = try open(parent, O_RDONLY | O_DIRECTORY)
    try name.withCString { (name) throws(Errno) in
      _ = try check { unlinkat(folder.descriptor, name, AT_REMOVEDIR) }
    }
  }
}
