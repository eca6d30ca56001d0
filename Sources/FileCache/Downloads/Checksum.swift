import Platform

/// What bytes are compared with.
struct Checksum: Sendable, Equatable {
  let algorithm: Digest.Algorithm
  /// In lower-case hexadecimal.
  let digest: String

  /// The MD5 that a tag is, else a SHA-256; nil when there is neither.
  init?(tag: String?, sha256: String?) {
    if let digest = Self.md5(of: tag) {
      self.init(.md5, digest)
    } else if let sha256 {
      self.init(.sha256, sha256)
    } else {
      return nil
    }
  }

  private init(_ algorithm: Digest.Algorithm, _ digest: String) {
    self.algorithm = algorithm
    self.digest = digest
  }

  /// The MD5 that a tag is, in lower case; nil when it is no hash of the whole object.
  ///
  /// A store gives an object that was written in one piece the quoted MD5 of its bytes as tag; one
  /// written in several has `-` and their number after a hash of hashes, and other stores have
  /// tags of quite another make.
  static func md5(of tag: String?) -> String? {
    guard let tag else { return nil }
    let text = Array(tag.utf8)
    guard text.count == 34, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\"")
    else { return nil }
    let digits = text[1..<33]
    let isHex = digits.allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        || (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte)
    }
    return isHex ? String(decoding: digits, as: UTF8.self).lowercased() : nil
  }
}

extension File {
  /// The digest of the first `size` bytes, in lower-case hexadecimal; nil when there are fewer.
  ///
  /// - Parameter progress: told how many more bytes were looked at.
  func digest(
    _ algorithm: Digest.Algorithm, size: Int64, progress: (Int64) -> Void = { _ in }
  ) throws(Errno) -> String? {
    var digest = Digest(algorithm)
    var position: Int64 = 0
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    while position < size {
      let wanted = Int(min(Int64(buffer.count), size - position))
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
      guard try read(part, at: position) == wanted else { return nil }
      digest.update(UnsafeRawBufferPointer(part))
      position += Int64(wanted)
      progress(Int64(wanted))
    }
    return digest.finish()
  }
}
