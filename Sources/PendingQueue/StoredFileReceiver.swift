package import BucketStore
package import Platform

/// A file that the store has now, with its bytes still on this device.
package struct StoredFile: Sendable {
  /// The name that it is stored under.
  package var object: ObjectName
  /// The store's facts, asked for after the upload and compared with the bytes.
  package var info: ObjectInfo
  /// Where the bytes lie: an absolute path, to be renamed away by whoever wants them.
  package var path: String
  /// Bytes.
  package var size: Int64
  /// Lower-case hexadecimal.
  package var sha256: String
  /// The modification time that the file had here.
  package var modified: Timestamp
  /// Permission bits, as of chmod(2).
  package var mode: UInt32
  /// Extended attributes by name.
  package var attributes: [ByteString: [UInt8]]
}

/// Takes over the bytes of a file once the store has it.
package protocol StoredFileReceiver: AnyObject, Sendable {
  /// Takes the bytes by renaming the file, or declines.
  ///
  /// Called on an uploader's thread, with no lock held, while the queue still shows the file.
  /// Afterwards the queue no longer does, so the receiver must show it by then. A receiver that
  /// declines leaves the file where it is; the queue deletes it.
  func take(_ file: StoredFile) -> Bool

  /// Another writer has stored or changed what is, or was, pending under the name, and what is here
  /// goes beside it or is gone: theirs shows under the name from now on.
  func changedElsewhere(_ object: ObjectName, _ info: ObjectInfo)

  /// The store no longer has what an earlier try had stored under the name: copies are stale.
  func storeChanged(_ object: ObjectName)
}
