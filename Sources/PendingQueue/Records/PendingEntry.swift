package import BucketStore
package import Platform

/// What the queue holds under one name, as of now.
package struct PendingEntry: Sendable, Equatable {
  /// The record; size and modification time are those of the bytes as written so far.
  package var record: PendingRecord
  /// Bytes of it that were sent by the try that runs, else zero.
  package var sent: Int64
  /// Handles that may still write to it.
  package var writers: Int

  /// The record's.
  package var id: PendingID { record.id }
  /// The name that it is shown under.
  package var object: ObjectName { record.object }
  /// Bytes as written so far.
  package var size: Int64 { record.size }
  /// The time of the last write, or as it was set since.
  package var modified: Timestamp { record.modified }
  /// Where it stands on its way to the store.
  package var state: PendingState { record.state }
}

/// What the queue holds right below one folder.
package struct PendingFolder: Sendable {
  /// Files by their last name segment, in no order.
  package var files: [(name: ByteString, entry: PendingEntry)]
  /// Names of folders that hold pending files at any depth, in no order.
  package var folders: [ByteString]
  /// Names of folders in which nothing is pending but deletions, in no order.
  package var emptied: [ByteString]
  /// Names that are about to be deleted at the store: not to be shown, whatever a listing says.
  package var deleted: Set<ByteString>
}

/// How many records stand where, and how many bytes they have.
package struct PendingCounts: Sendable, Equatable {
  /// Files that a program has open for writing.
  package var writing = 0
  /// Files that are complete and not on the wire.
  package var waiting = 0
  /// Files on the wire.
  package var uploading = 0
  /// Files that no further try is made for, until a person asks for one.
  package var failed = 0
  /// How many of those that are to be sent are no files, but the marks of folders made here.
  package var folders = 0
  /// Deletions of what was stored under a name that its file no longer has.
  package var deletions = 0
  /// Bytes of all of them.
  package var bytes: Int64 = 0
  /// Records of other owners, which are neither shown nor sent.
  package var ofOthers = 0
  /// Files of the queue's folder that could not be understood and were put aside.
  package var aside = 0

  /// Records that are still to be sent.
  package var unsent: Int { writing + waiting + uploading + deletions }
}

/// What changed in the queue.
package struct PendingChange: Sendable, Equatable {
  /// What is to be looked at again.
  package enum Kind: Sendable {
    /// Bytes, size, times or name: what is shown under the name is another thing.
    case content
    /// State, reason, attempts or progress alone.
    case state
    /// The name is no longer pending: stored, renamed or removed.
    case gone
  }

  /// The name that the change is seen under.
  package var object: ObjectName
  /// What changed of it.
  package var kind: Kind
}

/// What to set on a pending file; nil leaves as it is.
package struct PendingAttributes: Sendable {
  /// The modification time, as of utimensat(2).
  package var modified: Timestamp?
  /// Permission bits, as of chmod(2).
  package var mode: UInt32?

  package init(modified: Timestamp? = nil, mode: UInt32? = nil) {
    self.modified = modified
    self.mode = mode
  }
}

/// How a file begins its life in the queue.
package struct NewFile: Sendable {
  /// What of the store's it replaces.
  package var base: PendingBase
  /// Permission bits, as of chmod(2).
  package var mode: UInt32
  /// Nil for the time of its last write.
  package var modified: Timestamp?
  /// Extended attributes by name.
  package var attributes: [ByteString: [UInt8]]

  package init(
    base: PendingBase, mode: UInt32 = 0o644, modified: Timestamp? = nil,
    attributes: [ByteString: [UInt8]] = [:]
  ) {
    self.base = base
    self.mode = mode
    self.modified = modified
    self.attributes = attributes
  }
}

/// How waiting for the queue ended.
package enum WaitOutcome: Sendable, Equatable {
  /// Nothing is pending.
  case stored
  /// Nothing is left to be sent, and so many records failed for good.
  case failed(Int)
  /// The network is gone or switched off, or nobody is signed in, and records wait.
  case offline
  /// The time is over, and records wait.
  case outOfTime
}
