package import Platform

/// The writing half of a store's contract.
///
/// As in `BucketStore`, calls block, are safe from any thread, and end by themselves. What is safe
/// to repeat after an unknown outcome (the answer was lost) is said at each call.
package protocol WritableStore: BucketStore {
  /// How this store writes.
  var writing: WritingCapabilities { get }

  /// Whether the store takes this key; a key that it refuses is refused before it is queued.
  func allows(_ key: ByteString) -> Bool

  /// Stores an object whole: afterwards readers see all of the new bytes, or all of the old.
  ///
  /// Not safe to repeat with `.absent` after an unknown outcome: the first try may have stored it,
  /// and then the second throws `exists`; with `.version` it throws `conflict`. Safe with `.none`.
  /// - Parameters:
  ///   - request: where to, what kind, and on which condition.
  ///   - source: the bytes; read from the store's own thread, in order, and from the start again
  ///     where a connection broke.
  ///   - progress: told how many bytes were sent so far.
  /// - Throws: `StoreError`; `exists` where `.absent` was asked and there is one, `conflict` where
  ///   the version is another than asked for, `refused`, `tooLarge`, `typeRefused`, `keyRefused`.
  func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError)

  /// Opens an upload that survives a broken connection and a restart.
  ///
  /// - Returns: the token under which the store knows it; keep it before the first byte is sent.
  /// - Throws: `StoreError`; `unsupported` where `writing.resumable` is nil.
  func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken

  /// Sends what the store lacks of an opened upload, and finishes it.
  ///
  /// Safe to repeat: it begins by asking how much the store has.
  /// - Throws: `StoreError`; `notFound` when the store has forgotten the upload (open another).
  func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError)

  /// Gives an opened upload up. An upload that is gone already is no error. Safe to repeat.
  func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call) throws(StoreError)

  /// Deletes an object.
  ///
  /// After an unknown outcome a repeat throws `notFound`.
  /// - Throws: `StoreError`; `notFound`, `refused`.
  func delete(_ object: ObjectName, _ call: Call) throws(StoreError)

  /// Deletes many objects of one bucket.
  ///
  /// Safe to repeat.
  /// - Returns: the keys that were deleted; one that is missing here was not there or not allowed.
  func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call) throws(StoreError)
    -> Set<ByteString>

  /// Gives an object another key, in its bucket.
  ///
  /// After an unknown outcome a repeat throws `notFound`.
  /// - Throws: `StoreError`; `exists` when there is an object at the new key already, `notFound`.
  func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError)

  /// Gives an object another full name; in place of what has it, where `overwriting` is true.
  ///
  /// What another writer stores under the old name meanwhile is not deleted, as far as the store
  /// can tell it. After an unknown outcome a repeat throws `notFound`.
  /// - Throws: `StoreError`; `exists` when there is one already and `overwriting` is false,
  ///   `notFound`, `conflict` when another writer came between.
  func move(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)

  /// Copies an object on the store's side, its metadata included. Safe to repeat when overwriting.
  ///
  /// - Throws: `StoreError`; `exists` when there is one already and `overwriting` is false.
  func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
}

extension WritableStore {
  /// For stores whose moves neither replace nor leave the bucket. Who reads the target meanwhile
  /// sees the old bytes or the new, and never none.
  package func move(
    _ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call
  ) throws(StoreError) {
    if !overwriting, object.bucket == target.bucket {
      return try move(object, to: target.key, call)
    }
    try copy(object, to: target, overwriting: overwriting, call)
    try delete(object, call)
  }
}

/// How a store writes, stated by the store.
package struct WritingCapabilities: Sendable, Equatable {
  /// `.absent` is kept against other writers; without it two creators may both succeed, and the
  /// last one's bytes stay.
  package var atomicCreate: Bool
  /// `.version` is kept against other writers; without it the caller compares before and after.
  package var atomicReplace: Bool
  /// From which size on, in bytes, an upload should be a resumable one; nil where there is none.
  package var resumable: Int64?

  package init(atomicCreate: Bool, atomicReplace: Bool, resumable: Int64?) {
    self.atomicCreate = atomicCreate
    self.atomicReplace = atomicReplace
    self.resumable = resumable
  }
}

/// What to store, and on which condition.
package struct PutRequest: Sendable, Equatable {
  /// What must hold at the store for the bytes to be stored.
  package enum Condition: Sendable, Equatable {
    /// There is no such object yet.
    case absent
    /// The object still has this version, as an `info` told it.
    case version(String)
    /// Whatever is there.
    case none
  }

  /// Where to store it.
  package var object: ObjectName
  /// Bytes.
  package var size: Int64
  /// A bare media type, without parameters.
  package var contentType: String
  /// The user's own metadata, sent on every path; a plain overwrite would erase it.
  package var userMetadata: [String: String]
  /// Where it does not hold, the store answers with `exists` or `conflict`.
  package var condition: Condition

  package init(
    object: ObjectName, size: Int64, contentType: String, userMetadata: [String: String],
    condition: Condition
  ) {
    self.object = object
    self.size = size
    self.contentType = contentType
    self.userMetadata = userMetadata
    self.condition = condition
  }
}

/// The bytes of an upload, which can be read again.
package protocol PutSource: AnyObject, Sendable {
  /// Reads at an offset until the buffer is full or the bytes end.
  ///
  /// - Returns: how many were read.
  /// - Throws: `Errno`, which ends the upload with `damaged`.
  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int

  /// As `read`, for bytes that are looked at before they are sent: a store that has seen all of
  /// them so has none of them yet.
  ///
  /// - Returns: how many were read.
  /// - Throws: `Errno`, which ends the upload with `damaged`.
  func readAhead(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
}

extension PutSource {
  package func readAhead(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno)
    -> Int
  {
    try read(buffer, at: offset)
  }
}

/// The name of a resumable upload at its store. Holds no credential.
package struct UploadToken: Sendable, Equatable {
  /// Opaque to all but the store; kept in the record across restarts.
  package let text: String

  package init(_ text: String) {
    self.text = text
  }
}
