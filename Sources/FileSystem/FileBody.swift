import PendingQueue
import Platform

/// What the open handles of one inode share: its pending bytes, once there are any.
///
/// An inode is one file to all who have it open: what one writes, the others read. Guarded by its
/// own lock; whoever changes what the bytes are does so alone, in `exclusively`.
final class FileBody: Sendable {
  private struct State {
    /// The newest bytes; kept for reading when it is closed.
    var file: PendingFile?
    /// Open handles that may write.
    var writers = 0
    var isBusy = false
  }

  private let state = Locked(State())

  /// The pending bytes; nil while each handle reads the version that it was opened with.
  var file: PendingFile? { state.withLock { $0.file } }

  /// Whether any handle may still write.
  var hasWriters: Bool { state.withLock { $0.writers > 0 } }

  /// Lets one thread at a time change what the bytes are, or where they belong.
  ///
  /// May wait for another one's disk or network: for the slow lane.
  func exclusively<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure)
    -> Result
  {
    _ = state.wait { state -> Bool? in
      if state.isBusy { return nil }
      state.isBusy = true
      return true
    }
    defer {
      state.withLock { $0.isBusy = false }
      state.wakeAll()
    }
    return try body()
  }

  /// Puts bytes in the place of those before.
  func set(_ file: PendingFile) {
    let old = state.withLock { state -> PendingFile? in
      defer { state.file = file }
      return state.file
    }
    if old !== file { old?.close() }
  }

  /// Puts the bytes of a reader in place, unless a writer's are there.
  func show(_ file: PendingFile) {
    let old = state.withLock { state -> PendingFile? in
      if let known = state.file, known.id == file.id { return file }
      defer { state.file = file }
      return state.file
    }
    old?.close()
  }

  func addWriter() { state.withLock { $0.writers += 1 } }

  /// One writing handle less; with the last one the bytes are ready to be sent.
  func removeWriter() {
    let file = state.withLock { state -> PendingFile? in
      state.writers -= 1
      return state.writers == 0 ? state.file : nil
    }
    file?.close()
  }

  /// Lets go of the bytes; nobody has the inode open any more.
  func close() {
    state.withLock { state -> PendingFile? in
      defer { state.file = nil }
      return state.file
    }?.close()
  }
}
