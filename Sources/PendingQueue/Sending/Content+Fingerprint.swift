import Platform

extension Content {
  /// Reads the bytes once from end to end.
  ///
  /// - Returns: nil when cancelled.
  /// - Throws: `Errno` of reading.
  func fingerprint(_ cancellation: Cancellation) throws(Errno) -> Fingerprint? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { buffer.deallocate() }
    var sha256 = Digest(.sha256)
    var md5 = Digest(.md5)
    var offset: Int64 = 0
    while true {
      if cancellation.isCancelled { return nil }
      let count = try file.read(buffer, at: offset)
      if count == 0 { break }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      sha256.update(bytes)
      md5.update(bytes)
      offset += Int64(count)
    }
    return Fingerprint(size: offset, sha256: sha256.finish(), md5: md5.finish())
  }
}
