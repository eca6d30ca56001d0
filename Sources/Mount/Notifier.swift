import FileSystem
import Platform

/// Tells the kernel what it shall forget, on a thread of its own.
///
/// The kernel makes a notification wait for a lookup in the same folder, or a read of the same
/// file, that is still unanswered. So nobody waits for this thread, and it holds no lock while it
/// notifies.
final class Notifier: KernelNotifier {
  private enum Notice: Sendable {
    case entry(parent: UInt64, name: ByteString)
    case inode(UInt64)
  }

  private struct State {
    var queue: [Notice] = []
    var isClosed = false
    var thread: Thread?
    var session: FuseSession?
  }

  private let state = Locked(State())

  /// Starts to hand on what was queued and what will be.
  func start(_ session: FuseSession) throws(Errno) {
    let thread = try Thread(name: "fuse-notify") { self.run(session) }
    state.withLock { state in
      state.thread = thread
      state.session = session
    }
  }

  func invalidateEntry(parent: UInt64, name: ByteString) {
    add(.entry(parent: parent, name: name))
  }

  func invalidateInode(_ inode: UInt64) { add(.inode(inode)) }

  func forgetAttributes(of inode: UInt64) {
    state.withLock { $0.session }?.forgetAttributes(of: inode)
  }

  /// Ends the thread; what is queued no longer matters to a kernel that unmounts.
  ///
  /// - Returns: false when it has not left by the deadline.
  func close(until deadline: Instant) -> Bool {
    let thread = state.withLock { state in
      state.isClosed = true
      state.session = nil
      state.queue = []
      return state.thread
    }
    state.wakeAll()
    return thread?.join(until: deadline) ?? true
  }

  private func add(_ notice: Notice) {
    state.withLock { state in
      if !state.isClosed { state.queue.append(notice) }
    }
    state.wakeAll()
  }

  private func run(_ session: FuseSession) {
    while let notices = next() {
      for notice in notices {
        let isThere =
          switch notice {
          case .entry(let parent, let name): session.invalidateEntry(parent: parent, name: name)
          case .inode(let inode): session.invalidateInode(inode)
          }
        // The kernel refuses when it has unmounted: the rest of the queue is moot.
        if !isThere { break }
      }
    }
  }

  /// What was queued since; nil once closed.
  private func next() -> [Notice]? {
    state.wait { state -> [Notice]?? in
      if state.isClosed { return .some(nil) }
      guard !state.queue.isEmpty else { return nil }
      defer { state.queue = [] }
      return state.queue
    } ?? nil
  }
}
