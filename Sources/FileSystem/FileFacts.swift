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
      tag.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
  }

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
    if let size, let otherSize = other.size, size != otherSize { return false }
    if let tagHash, let otherHash = other.tagHash { return tagHash == otherHash }
    return true
  }
}
