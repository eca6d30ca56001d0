package import BucketStore
package import Platform

/// How a queue is kept and sent.
package struct QueueOptions: Sendable {
  /// The profile's data folder, absolute; the queue is the folder `pending` in it.
  package var directory: String
  /// Whose session is used now; records of others are kept, not shown and not sent.
  package var owner: String
  /// Uploads in flight at a time; 1 sends strictly one after the other.
  package var uploads: Int
  /// How long the store may stay silent before a call fails.
  package var timeout: Span
  /// Whether sending is possible now. Must not block.
  package var gate: @Sendable () -> UploadGate
  /// Asked to free so many bytes on the queue's disk when it is full.
  ///
  /// Returns whether it freed any; then the write is tried once more.
  package var makeRoom: @Sendable (Int64) -> Bool
  /// What files are called that another writer was faster with.
  package var conflictNames: ConflictNames
  /// The last segment of the keys that keep folders and are no files; nil where there are none.
  package var folderMark: ByteString?
  /// What an object is called in the log: as a person sees it. Must not block.
  package var title: @Sendable (ObjectName) -> String = { $0.description }
  /// The calendar's time; tests have their own.
  package var clock: @Sendable () -> Timestamp

  package init(
    directory: String, owner: String, uploads: Int = 4, timeout: Span = .seconds(10),
    gate: @escaping @Sendable () -> UploadGate = { .open },
    makeRoom: @escaping @Sendable (Int64) -> Bool = { _ in false },
    conflictNames: ConflictNames = ConflictNames(),
    clock: @escaping @Sendable () -> Timestamp = { .now }
  ) {
    self.directory = directory
    self.owner = owner
    self.uploads = uploads
    self.timeout = timeout
    self.gate = gate
    self.makeRoom = makeRoom
    self.conflictNames = conflictNames
    self.clock = clock
  }
}

/// Whether uploads may run.
package enum UploadGate: String, Sendable {
  case open
  /// The network is known to be gone.
  case offline
  /// The person switched network access off.
  case disabled
  /// The session is being restored, or nobody is signed in.
  case signedOut
}
