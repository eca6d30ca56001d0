package import BucketStore

/// What tells one content from another: its size and its digests, in lower-case hexadecimal.
package struct Fingerprint: Hashable, Sendable {
  /// Bytes.
  package var size: Int64
  /// What the user's metadata at the store carry.
  package var sha256: String
  /// What many stores use as the tag of an object that was stored in one piece.
  package var md5: String

  package init(size: Int64, sha256: String, md5: String) {
    self.size = size
    self.sha256 = sha256
    self.md5 = md5
  }

  /// How an object's facts compare.
  package enum Match: Sendable {
    case same
    case different
    /// The store tells nothing but a size that is the same.
    case unknown
  }

  /// Whether an object has these bytes, as far as its facts tell.
  ///
  /// A tag that is an MD5 speaks of the bytes; the SHA-256 in the user's metadata only repeats what
  /// the writer said.
  /// - Parameter isWhole: whether the object was stored in one piece, so that its tag may be an MD5.
  package func match(_ info: ObjectInfo, isWhole: Bool = true) -> Match {
    if let size = info.size, size != self.size { return .different }
    if isWhole, let digest = info.tag.flatMap(Self.digest) {
      return digest == md5 ? .same : .different
    }
    if let claimed = info.userMetadata?[Self.metadataKey] {
      return claimed.lowercased() == sha256 ? .same : .different
    }
    return .unknown
  }

  /// Whether an object is one of ours that was meant to have these bytes, damaged as it may be.
  package func isClaimed(by info: ObjectInfo, in store: WritingCapabilities) -> Bool {
    info.userMetadata?[Self.metadataKey]?.lowercased() == sha256
      || match(info, isWhole: store.isWhole(size)) == .same
  }

  /// The name under which the user's metadata carry the SHA-256.
  package static let metadataKey = ObjectInfo.digestKey

  private static func digest(_ tag: String) -> String? {
    let digits = tag.filter { $0 != "\"" }
    guard digits.utf8.count == 32, digits.allSatisfy(\.isHexDigit) else { return nil }
    return digits.lowercased()
  }
}

extension WritingCapabilities {
  /// Whether an object of so many bytes is stored in one piece.
  func isWhole(_ size: Int64) -> Bool { resumable.map { size < $0 } ?? true }
}
