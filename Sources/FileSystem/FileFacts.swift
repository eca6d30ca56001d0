import BucketStore
import FileCache
import Platform

/// What tells two versions of a file apart, in 32 bytes a node.
struct FileFacts: Sendable, Equatable {
  /// Bytes; nil where the store does not know.
  let size: Int64?
  let modified: Timestamp?
  /// FNV-1a of the entity tag; nil where there is none.
  let tagHash: UInt64?

  init(size: Int64?, tag: String?, modified: Timestamp?) {
    self.size = size
    self.modified = modified
    tagHash = tag.map { tag in
      max(
        1,
        EntityTag.unmarked(tag).utf8.reduce(0xCBF2_9CE4_8422_2325) {
          ($0 ^ UInt64($1)) &* 0x100_0000_01B3
        })
    }
  }

  /// Of a file that is pending: what its writers make of it is one version to those who have it
  /// open.
  init(pendingSize size: Int64?, _ modified: Timestamp?) {
    self.size = size
    self.modified = modified
    tagHash = Self.pending
  }

  /// No tag has this hash.
  private static let pending: UInt64 = 0

  /// Whether the store does not have it yet.
  var isPending: Bool { tagHash == Self.pending }

  init(_ entry: ListingEntry) {
    self.init(size: entry.size, tag: entry.tag, modified: entry.modified)
  }

  init(_ file: OpenFile) {
    self.init(size: file.size, tag: file.info.tag, modified: file.info.modified)
  }

  /// Whether the other may be the same version: nothing that both know differs.
  ///
  /// Times do not count: a listing and a download may date the same write differently.
  func isVersion(of other: FileFacts) -> Bool {
    if isPending || other.isPending { return isPending == other.isPending }
    if let size, let otherSize = other.size, size != otherSize { return false }
    if let tagHash, let otherHash = other.tagHash { return tagHash == otherHash }
    return true
  }
}
