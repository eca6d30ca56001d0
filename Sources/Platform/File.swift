import CLinux
package import Glibc

/// An open file descriptor with one owner; closed when its owner lets go.
///
/// Follows open(2), pread(2), pwrite(2), fsync(2). Interrupted calls are made again.
package struct File: ~Copyable, Sendable {
  /// For calls that take one; it stays this value's.
  package let descriptor: CInt

  /// Takes over a descriptor that is open.
  package init(owning descriptor: CInt) {
    self.descriptor = descriptor
  }

  /// Opens a path. `O_CLOEXEC` is always set.
  package init(_ path: String, _ flags: CInt, mode: UInt32 = 0o600) throws(Errno) {
    descriptor = try check { Glibc.open(path, flags | O_CLOEXEC, mode) }
  }

  deinit {
    _ = Glibc.close(descriptor)
  }

  /// Reads at an offset until the buffer is full or the file ends.
  ///
  /// - Returns: how many bytes were read; fewer than asked only at the end of the file.
  package func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
  {
    var done = 0
    while done < buffer.count {
      let count = try check {
        pread(
          descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done,
          off_t(offset) + off_t(done))
      }
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// Reads from the current position to the end: for pipes, and files of /proc, which have no size.
  ///
  /// - Throws: `Errno`; EFBIG when there are more than `limit` bytes.
  package func readToEnd(limit: Int = 16 << 20) throws(Errno) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      let count = try check { Glibc.read(descriptor, &chunk, chunk.count) }
      if count == 0 { return bytes }
      bytes += chunk.prefix(count)
      if bytes.count > limit { throw .fileTooLarge }
    }
  }

  /// Writes all bytes at an offset.
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
    var done = 0
    while done < bytes.count {
      done += try check {
        pwrite(
          descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done,
          off_t(offset) + off_t(done))
      }
    }
  }

  /// The facts of fstat(2).
  package func status() throws(Errno) -> stat {
    var result = stat()
    try check { fstat(descriptor, &result) }
    return result
  }

  /// Makes bytes and size durable (fdatasync(2)).
  package func sync() throws(Errno) {
    try check { fdatasync(descriptor) }
  }

  /// Gives up a lock of flock(2).
  ///
  /// Closing alone would not: a child process that another thread is starting at this moment shares
  /// the descriptor until it runs its program.
  package func unlock() {
    // It fails for what is no lock, and then there is none to give up.
    _ = flock(descriptor, LOCK_UN)
  }

  /// Sets the length (ftruncate(2)).
  package func truncate(to size: Int64) throws(Errno) {
    try check { ftruncate(descriptor, off_t(size)) }
  }

  /// All bytes of a small file.
  ///
  /// - Throws: `Errno`; EFBIG when it is longer than `limit` bytes.
  package static func contents(of path: String, limit: Int = 16 << 20) throws(Errno) -> [UInt8] {
    let file = try File(path, O_RDONLY)
    let size = try file.status().st_size
    guard size <= limit else { throw .fileTooLarge }
    var bytes = [UInt8](repeating: 0, count: Int(size))
    let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
      try file.read(UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
    return Array(bytes.prefix(count))
  }

  /// Replaces a file in one step: temporary file, fsync, rename, fsync of the folder.
  ///
  /// After a crash the path names either the old bytes or the new, never a mixture.
  package static func replace(_ path: String, with bytes: [UInt8], mode: UInt32 = 0o600)
    throws(Errno)
  {
    let temporary = path + ".new"
    do throws(Errno) {
      let file = try File(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: mode)
      try bytes.withUnsafeBufferPointer { (buffer) throws(Errno) in
        try file.write(UnsafeRawBufferPointer(buffer), at: 0)
      }
      try file.sync()
      try check { rename(temporary, path) }
    } catch {
      unlink(temporary)
      throw error
    }
    let parent = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let folder = try File(parent.isEmpty ? "." : parent.joined(separator: "/") + "/", O_RDONLY)
    try check { fsync(folder.descriptor) }
  }
}
