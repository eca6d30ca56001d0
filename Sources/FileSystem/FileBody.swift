import FileCache
import PendingQueue
import Platform

/// What the open handles of one inode share: its pending bytes, once there are any.
///
/// An inode is one file to all who have it open: what one writes, the others read. Guarded by its
/// own lock; whoever changes what the bytes are does so alone, in `exclusively`.
final class FileBody: Sendable {
  private struct State {
    /// The newest bytes; kept for reading when no handle may write them any more.
    var file: PendingFile?
    /// Whether `file` can be written.
    var isWritable = false
    /// Open handles that may write.
    var writers = 0
    /// The store's version that a writer has opened last.
    var source: OpenFile?
    /// What the store has of it, where that is known better than by the version that was opened.
    var base: PendingBase?
    var isBusy = false
    /// Grows with each change that came to its end.
    var changes: UInt64 = 0
  }

  private let state = Locked(State())

  /// The pending bytes; nil while each handle reads the version that it was opened with.
  var file: PendingFile? { state.withLock { $0.file } }

  /// The pending bytes when they can be written.
  var writable: PendingFile? { state.withLock { $0.isWritable ? $0.file : nil } }

  /// The version that the first write starts from, while nothing was written.
  var unwritten: OpenFile? { state.withLock { $0.writers > 0 && !$0.isWritable ? $0.source : nil } }

  /// Open handles that may write.
  var writers: Int { state.withLock { $0.writers } }

  var base: PendingBase? {
    get { state.withLock { $0.base } }
    set { state.withLock { $0.base = newValue } }
  }

  /// Lets one thread at a time change what the bytes are, or where they belong.
  ///
  /// Waits for another one's disk or network, on the slow lane only, until the caller is
  /// interrupted; whoever is waited for has bounds of its own. The waiting counts as silence of the
  /// store only where that one got nothing done.
  /// - Throws: `Failure`; EINTR, or what `body` throws.
  func exclusively<Result>(_ caller: Caller, _ body: () throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    let before = state.withLock { $0.changes }
    let isMine = state.wait(caller.call.cancellation) { state -> Bool? in
      if state.isBusy { return caller.lane < .slow ? false : nil }
      state.isBusy = true
      return true
    }
    guard isMine ?? false else {
      throw caller.lane < .slow
        ? .mustWait : Failure(.interrupted, "interrupted while another handle changed the file")
    }
    defer {
      state.withLock { $0.isBusy = false }
      state.wakeAll()
    }
    if state.withLock({ $0.changes != before }) { caller.call.getsOn() }
    let result = try body()
    state.withLock { $0.changes &+= 1 }
    return result
  }

  /// Puts a writer's bytes in the place of those before.
  ///
  /// - Parameter addingWriter: whether they come with one writing handle more.
  func write(to file: PendingFile, addingWriter: Bool = false) {
    let old = state.withLock { state -> PendingFile? in
      let old = state.isWritable ? state.file : nil
      if addingWriter { state.writers += 1 }
      state.file = file
      state.isWritable = true
      return old
    }
    old?.close()
  }

  /// Puts bytes in place to be read, unless a writer's are there.
  func read(from file: PendingFile) {
    let old = state.withLock { state -> PendingFile? in
      if state.isWritable { return file }
      // Ids grow with time, and the bytes of one inode with them.
      if let known = state.file, known.id >= file.id { return file }
      defer { state.file = file }
      return state.file
    }
    old?.close()
  }

  /// One writing handle more.
  ///
  /// - Parameter source: the store's version that it was opened with, if any.
  func addWriter(_ source: OpenFile?) {
    state.withLock { state in
      state.writers += 1
      if let source { state.source = source }
    }
  }

  /// One writing handle more, of bytes that are being written.
  ///
  /// - Returns: false when they are not written any more.
  func addWriter(of file: PendingFile) -> Bool {
    state.withLock { state in
      guard state.isWritable, state.file === file else { return false }
      state.writers += 1
      return true
    }
  }

  /// One writing handle less; with the last one the bytes are ready to be sent.
  func removeWriter() {
    let file = state.withLock { state -> PendingFile? in
      state.writers -= 1
      if state.writers <= 0 { state.source = nil }
      guard state.writers <= 0, state.isWritable else { return nil }
      state.isWritable = false
      return state.file
    }
    file?.close()
  }

  /// Lets go of the bytes; nobody has the inode open any more.
  func close() {
    let file = state.withLock { state -> PendingFile? in
      defer { state.file = nil }
      state.isWritable = false
      return state.file
    }
    file?.close()
  }
}
