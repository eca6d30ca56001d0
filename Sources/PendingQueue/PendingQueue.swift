package import BucketStore
package import Platform

/// The changes that the store does not have yet: a folder of files and records, and their uploader.
///
/// Nothing that was acknowledged is lost: after `PendingFile.flush` a kill of the program loses
/// nothing, after `PendingFile.sync`, or one second after `flush`, a power cut loses nothing.
/// Calls are safe from any thread. Those that change something write to the disk, none waits for
/// the network.
package final class PendingQueue: Sendable {
  /// The most bytes that the extended attributes of one file may have, names and values together.
  package static let attributeLimit = 16 << 10

  private let options: QueueOptions
  private let store: any WritableStore

  /// Opens the folder, made and checked, locked, and scanned; sends nothing before `start`.
  package init(_ options: QueueOptions, store: any WritableStore) throws(QueueError) {
    self.options = options
    self.store = store
  }

  /// Begins to send; stored files are handed to the receiver, or deleted where there is none.
  package func start(receiver: (any StoredFileReceiver)?) throws(Errno) {
    throw .notImplemented
  }

  /// Stops sending, makes durable what was acknowledged, and lets another program have the folder.
  package func close() {}

  // MARK: - What is pending

  /// What is pending under a name, or nil. Memory only.
  package func entry(for object: ObjectName) -> PendingEntry? { nil }

  /// What is pending right below a folder: a prefix that is empty or ends in `/`. Memory only.
  package func folder(_ prefix: ByteString, in bucket: ByteString) -> PendingFolder {
    PendingFolder(files: [], folders: [])
  }

  /// Whether anything is pending below a folder's prefix. Memory only.
  package func hasEntries(below prefix: ByteString, in bucket: ByteString) -> Bool { false }

  /// All of the owner's entries, oldest first.
  package var entries: [PendingEntry] { [] }

  package var counts: PendingCounts { PendingCounts() }

  /// Tells of each change, on the thread that made it, with no lock held. It must not block.
  package func observe(_ observer: @escaping @Sendable (PendingChange) -> Void) {}

  // MARK: - Writing

  /// Makes an empty file, in place of what is pending under the name.
  ///
  /// What was pending there is given up only once the new file is durable.
  /// - Throws: `Errno`, such as ENOSPC.
  package func create(_ object: ObjectName, _ new: NewFile) throws(Errno) -> PendingFile {
    throw .notImplemented
  }

  /// Opens what is pending under a name for writing.
  ///
  /// Bytes that are on their way to the store are copied first (reflink where the file system has
  /// it); the upload ends by itself and the newer bytes follow it.
  /// - Parameter keepingBytes: false starts from an empty file (O_TRUNC).
  /// - Throws: `Errno`; ENOENT when nothing is pending under the name.
  package func edit(_ object: ObjectName, keepingBytes: Bool = true) throws(Errno) -> PendingFile {
    throw .notImplemented
  }

  /// Makes a file that begins with the bytes of an open descriptor: an object changed in place.
  ///
  /// - Parameter source: read with pread(2), or cloned; it stays the caller's.
  /// - Throws: `Errno`; EIO when the source is shorter than `size`.
  package func adopt(_ object: ObjectName, from source: CInt, size: Int64, _ new: NewFile)
    throws(Errno) -> PendingFile
  {
    throw .notImplemented
  }

  /// Opens what is pending under a name for reading; nil when nothing is.
  ///
  /// It goes on reading the same bytes when the file is stored, removed or replaced.
  package func open(_ object: ObjectName) throws(Errno) -> PendingFile? { throw .notImplemented }

  /// Sets times and mode of a pending file.
  ///
  /// - Throws: `Errno`; ENOENT when nothing is pending under the name.
  package func set(_ attributes: PendingAttributes, of object: ObjectName) throws(Errno) {
    throw .notImplemented
  }

  /// Sets an extended attribute of a pending file; nil removes it.
  ///
  /// - Throws: `Errno`; ENOENT, ENOSPC beyond `attributeLimit`, ENODATA when removing what is not
  ///   there.
  package func setAttribute(_ name: ByteString, _ value: [UInt8]?, of object: ObjectName)
    throws(Errno)
  {
    throw .notImplemented
  }

  /// Gives a pending file another name, in place of what is pending there.
  ///
  /// Also while it is being sent: then the store ends with the new name only.
  /// - Parameter base: what the store has under the new name; where something is pending there,
  ///   its base is used instead.
  /// - Throws: `Errno`; ENOENT when nothing is pending under the old name.
  package func rename(_ object: ObjectName, to target: ObjectName, base: PendingBase)
    throws(Errno)
  {
    throw .notImplemented
  }

  /// Removes what is pending under a name; what an upload on its way stores is deleted again.
  ///
  /// Open handles go on reading and writing the bytes, which are never sent.
  /// - Throws: `Errno`; ENOENT when nothing is pending under the name.
  package func remove(_ object: ObjectName) throws(Errno) { throw .notImplemented }

  // MARK: - Sending

  /// Lets what failed, or waits for its next try, be tried at once.
  ///
  /// - Parameter object: nil for all.
  /// - Returns: how many records that were.
  @discardableResult
  package func retry(_ object: ObjectName? = nil) -> Int { 0 }

  /// Says that the gate may have opened, or the owner's session changed.
  package func gateChanged() {}

  /// Another user signed in: shows and sends that user's records instead.
  package func setOwner(_ owner: String) {}

  /// Waits until everything is stored, or cannot be.
  ///
  /// - Parameters:
  ///   - deadline: nil waits for ever.
  ///   - cancellation: ends the waiting with `outOfTime`.
  package func wait(until deadline: Instant?, _ cancellation: Cancellation) -> WaitOutcome {
    .stored
  }

  /// Removes every record of the owner, bytes included. Returns how many that were.
  package func clear() throws(Errno) -> Int { throw .notImplemented }
}
