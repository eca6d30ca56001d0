import Glibc

extension File {
  /// Fills an empty file with the first bytes of a descriptor: cloned where the file system can
  /// (ioctl_ficlone(2)), else copied.
  ///
  /// - Parameter noting: told of each piece that was copied, and where it went.
  /// - Throws: `Errno`; EIO when the source is shorter than `size`.
  package func fill(
    from source: CInt, size: Int64,
    noting: (UnsafeRawBufferPointer, Int64) -> Void = { _, _ in }
  ) throws(Errno) {
    if size > 0, ioctl(descriptor, Self.ficlone, source) != 0 {
      try copy(from: source, size: size, noting)
    }
    let filled = Int64(try status().st_size)
    if filled > size { try truncate(to: size) }
    guard filled >= size else { throw .io }
  }

  private func copy(
    from source: CInt, size: Int64, _ noting: (UnsafeRawBufferPointer, Int64) -> Void
  ) throws(Errno) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while offset < size {
      let wanted = Int(min(Int64(buffer.count), size - offset))
      let count = try check { pread(source, buffer.baseAddress, wanted, off_t(offset)) }
      guard count > 0 else { throw .io }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      try write(bytes, at: offset)
      noting(bytes, offset)
      offset += Int64(count)
    }
  }

  /// FICLONE of linux/fs.h, which is a macro.
  private static let ficlone: UInt = 0x4004_9409
}
