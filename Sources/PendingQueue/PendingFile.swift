package import BucketStore
package import Platform

/// One open handle on a pending file.
///
/// Handles of one file share its bytes. A file that is removed or replaced stays readable and
/// writable through its handles, and is then forgotten. Safe from any thread.
package final class PendingFile: Sendable {
  private let queue: PendingQueue
  private let content: Content
  private let isWriter: Bool
  private let isClosed = Locked(false)

  init(_ queue: PendingQueue, _ content: Content, isWriter: Bool) {
    self.queue = queue
    self.content = content
    self.isWriter = isWriter
  }

  deinit { close() }

  /// The record that the bytes belong to.
  package var id: PendingID { content.id }

  /// The bytes' number as of now.
  package var size: Int64 { content.shape.withLock { $0.size } }

  /// The time of the last write, or as it was set since.
  package var modified: Timestamp { content.shape.withLock { $0.modified } }

  /// Reads at an offset; fewer bytes than asked only at the end.
  ///
  /// - Throws: `Errno`.
  package func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
  {
    guard offset >= 0 else { throw .invalid }
    return try content.file.read(buffer, at: offset)
  }

  /// Writes all bytes at an offset, past a hole where the file is shorter.
  ///
  /// - Throws: `Errno`; ENOSPC when the disk is full (what was written before is kept), EBADF for a
  ///   handle that was opened for reading, EAGAIN for who may not wait.
  package func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, mayWait: Bool = true
  ) throws(Errno) {
    try change(Int64(bytes.count), mayWait: mayWait) { (now) throws(Errno) in
      try content.write(bytes, at: offset, now: now)
    }
  }

  /// Sets the length; a longer file ends in a hole.
  ///
  /// - Throws: `Errno`, as `write`.
  package func truncate(to size: Int64, mayWait: Bool = true) throws(Errno) {
    try change(4096, mayWait: mayWait) { (now) throws(Errno) in
      try content.truncate(to: size, now: now)
    }
  }

  /// Follows fallocate(2): reserves room, or punches a hole, by the mode's flags.
  ///
  /// - Throws: `Errno`, as `write`; EOPNOTSUPP where the disk's file system has no such call.
  package func allocate(_ mode: CInt, at offset: Int64, length: Int64) throws(Errno) {
    try change(length, mayWait: true) { (now) throws(Errno) in
      try content.allocate(mode, at: offset, length: length, now: now)
    }
  }

  /// Makes what was written durable on this device before it returns (fsync(2)).
  ///
  /// - Throws: `Errno`.
  package func sync() throws(Errno) { try queue.sync(content) }

  /// Acknowledges what was written, at each close(2): a kill loses nothing from here on, a power
  /// cut nothing from one second later on.
  ///
  /// - Throws: `Errno`, such as ENOSPC; the bytes are kept and the record is tried again. EAGAIN for
  ///   who may not wait: nothing is acknowledged.
  package func flush(mayWait: Bool = true) throws(Errno) {
    guard isWriter else { return }
    try queue.flush(content, mayWait: mayWait)
  }

  /// Has the store take what was acknowledged, and waits for its answer, though the file is open.
  ///
  /// Changes of the bytes wait meanwhile. The file stays pending when it is not stored.
  /// - Throws: `StoreError`: why it is not; `cancelled` when the caller was interrupted.
  package func store(_ call: Call) throws(StoreError) { try queue.store(content, call) }

  /// Lets the handle go. The last writer's makes the file ready to be sent.
  ///
  /// What was written since the last `flush` is acknowledged too.
  package func close() {
    let isFirst = isClosed.withLock { closed in
      defer { closed = true }
      return !closed
    }
    if isFirst { queue.close(content, isWriter: isWriter) }
  }

  /// Takes the file out of the queue, as if it had not been made, and lets the handle go.
  package func discard() {
    content.shape.withLock { $0.isDirty = false }
    queue.discard(content.id)
    close()
  }

  private func change(
    _ bytes: Int64, mayWait: Bool, _ body: (Timestamp) throws(Errno) -> Void
  ) throws(Errno) {
    guard isWriter, !isClosed.withLock({ $0 }) else { throw .badHandle }
    try queue.prepareChange(of: content, mayWait: mayWait)
    defer { queue.endChange(of: content, mayWait: mayWait) }
    let now = queue.options.clock()
    try queue.makingRoom(for: bytes, mayWait: mayWait) { () throws(Errno) in try body(now) }
  }
}
