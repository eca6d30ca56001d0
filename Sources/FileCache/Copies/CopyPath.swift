import BucketStore
import Platform

/// Where a copy lies, relative to the cache's folder.
enum CopyPath {
  /// `storage/<bucket>/<path>` when bucket and path are short printable names, else nil.
  ///
  /// A name that a path cannot hold as it is (`..`, an empty segment, control characters, what is
  /// not UTF-8) is never cut or changed to fit, since two names could then meet in one file.
  static func plain(_ object: ObjectName) -> ByteString? {
    guard isPlain(object.bucket), object.bucket.count + object.key.count <= 1024 else {
      return nil
    }
    let segments = object.key.split(at: ByteString.slash)
    guard segments.allSatisfy(isPlain) else { return nil }
    return CacheDirectory.storage + "/" + object.bucket + "/" + object.key
  }

  /// `storage-hashed/<hash>`, for any name. Lengths keep bucket and key apart.
  static func hashed(_ object: ObjectName) -> ByteString {
    let name = Array("\(object.bucket.count):".utf8) + object.bucket.bytes + object.key.bytes
    return CacheDirectory.hashed + "/" + ByteString(Digest.hex(.sha256, of: name))
  }

  private static func isPlain(_ segment: ByteString) -> Bool {
    guard !segment.isEmpty, segment.count <= 255, segment != ".", segment != "..",
      let text = segment.string
    else { return false }
    return text.unicodeScalars.allSatisfy { scalar in
      scalar != "/" && scalar != "\\" && scalar.value >= 0x20
        && !(0x7F...0x9F).contains(scalar.value)
    }
  }
}
