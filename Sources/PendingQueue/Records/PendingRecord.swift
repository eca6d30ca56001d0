package import BucketStore
package import Platform

/// What is kept on disk of one change that the store does not have yet.
///
/// Its form on disk is `<id>.json`, beside the bytes in `<id>.data`; docs/durability.md describes
/// each field.
package struct PendingRecord: Equatable, Sendable {
  /// What the store is to be told; the raw value stands in the record on disk.
  package enum Operation: String, Sendable {
    /// Store the bytes under the name.
    case put
    /// Delete what an earlier try may have stored under the name: the file was removed or renamed
    /// while it was on its way. Never shown, and without bytes.
    case delete
  }

  /// Made here, never used twice; grows with time.
  package let id: PendingID
  /// The name that it has now.
  package var object: ObjectName
  /// What is to be done at the store.
  package var operation = Operation.put
  /// When the change was picked up, by this device's clock.
  package var created: Timestamp
  /// When it took its present name, in nanoseconds made to grow strictly: of two records of one
  /// name the later one wins.
  package var placed: UInt64
  /// A bare media type, found by the file's name.
  package var contentType: String
  /// Bytes.
  package var size: Int64
  /// The SHA-256 of the bytes once it was computed, at the first try.
  package var sha256: String?
  /// The file's modification time, which travels in the user's metadata.
  package var modified: Timestamp
  /// Permission bits, as of chmod(2).
  package var mode: UInt32
  /// Extended attributes by name; bounded by `PendingQueue.attributeLimit`.
  package var attributes: [ByteString: [UInt8]] = [:]
  /// What of the store's it replaces: another version there is a conflict.
  package var base: PendingBase
  /// Where it stands on its way to the store.
  package var state: PendingState
  /// Whether the bytes were made durable (fsync(2)) while the file was still being written.
  package var isSynced = false
  /// Why the last try failed; nil after none, or one that is over.
  package var failure: PendingFailure?
  /// Tries that reached the store and cost one.
  package var attempts: Int64 = 0
  /// No try before this moment; nil for at once.
  package var nextTry: Timestamp?
  /// Whose session it is to be sent with.
  package var owner: String
  /// The resumable upload that was opened for these bytes.
  package var upload: UploadToken?
  /// Contents that earlier tries may have stored under this name: when the store holds one of
  /// them, it is ours and no conflict.
  package var tried: [Fingerprint] = []
  /// The name under which another writer was first: the file was set aside for that.
  package var conflictOf: ObjectName?
  /// The name that it had when it was renamed on its way: to be deleted there by a record of its
  /// own. Here for a moment only, so that a crash between the two loses neither.
  package var left: LeftName?

  /// An old name that earlier tries may have stored something under.
  package struct LeftName: Equatable, Sendable {
    /// The record that is to delete it.
    package var id: PendingID
    /// The old name.
    package var object: ObjectName
    /// Contents that may be stored there, and are ours.
    package var tried: [Fingerprint]
  }
}
