import BucketStore
import Glibc
import Platform

/// What a file of ours is told apart by on the device: one that differs may hold other bytes.
struct FileStamp: Sendable, Equatable {
  let size: Int64
  let inode: Int64
  /// Last change of the bytes (st_mtim), which anybody can set back.
  let written: Timestamp
  /// Last change of anything (st_ctim), which nobody can set back.
  let changed: Timestamp

  init(size: Int64, inode: Int64, written: Timestamp, changed: Timestamp) {
    self.size = size
    self.inode = inode
    self.written = written
    self.changed = changed
  }

  init(_ status: stat) {
    size = Int64(status.st_size)
    inode = Int64(bitPattern: UInt64(status.st_ino))
    written = Timestamp(
      seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec))
    changed = Timestamp(
      seconds: Int64(status.st_ctim.tv_sec), nanoseconds: Int64(status.st_ctim.tv_nsec))
  }

  /// The same, of a file whose bytes were not compared yet: no file has it.
  var unproven: FileStamp {
    FileStamp(size: size, inode: inode, written: written, changed: .epoch)
  }
}

/// What the store said of the version whose bytes are kept.
struct ObjectFacts: Sendable, Equatable {
  var size: Int64
  var tag: String?
  var version: String?
  var modified: Timestamp?
  var contentType: String?

  init(
    size: Int64, tag: String?, version: String? = nil, modified: Timestamp?,
    contentType: String? = nil
  ) {
    self.size = size
    self.tag = tag
    self.version = version
    self.modified = modified
    self.contentType = contentType
  }
}

/// One object kept whole on this device, as the index knows it.
struct Copy: Sendable, Equatable {
  /// The file, relative to the cache's folder.
  var path: ByteString
  /// The file as it was when its bytes were last known to be right.
  var stamp: FileStamp
  var facts: ObjectFacts
  /// Of the bytes, in lower-case hexadecimal; nil where the tag is their MD5.
  var sha256: String?
  /// The time that listings give for this version, when it is not `facts.modified`.
  var listed: Timestamp?
  /// When a listing gave that time in this run of the program.
  var listedAt: Timestamp?
  var fetched: Timestamp
  var confirmed: Timestamp
  var used: Timestamp
  var isPinned = false
  /// Whether the bytes matched the store's checksum.
  var isVerified: Bool
  /// Whether the bytes are known to be on the disk.
  var isDurable = false
  /// Names these bytes within this run of the program.
  var content: UInt64

  /// What the bytes can be compared with; nil when there is nothing.
  var checksum: Checksum? { Checksum(tag: facts.tag, sha256: sha256) }

  /// The time in listings that is this version's: it was listed before the store confirmed the tag.
  var confirmedListed: Timestamp? {
    if let listedAt, listedAt > confirmed { return nil }
    return listed
  }

  /// Whether the store has confirmed it within that time. A clock set back makes it stale.
  func isConfirmed(within age: Span, at now: Timestamp) -> Bool {
    let passed = now.since(confirmed)
    return passed >= .zero && passed < age
  }
}

/// An object of which some parts are kept, in a file in `tmp`.
struct Partial: Sendable, Equatable {
  var path: ByteString
  /// The file when the map of its parts was made.
  var stamp: FileStamp
  var facts: ObjectFacts
  var present: PartMap
  var fetched: Timestamp
  var used: Timestamp
  var isDurable = false
}
