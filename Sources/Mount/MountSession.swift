package import FileSystem
import Glibc
import Platform

/// A mount: from the mount point's check to the last answer.
///
/// One thread calls `run`, which returns when the mount is gone; any thread may call `stop`.
package final class MountSession: Sendable {
  /// How a mount ended.
  package enum Ending: Sendable, Equatable {
    /// `stop` was called, or it was unmounted from outside.
    case stopped
    /// This signal ended it.
    case signal(CInt)
    /// A second signal came while the first was being obeyed: what still waited was left behind.
    case forced(CInt)
  }

  private enum Phase {
    case idle
    case running(pthread_t)
    case ended
  }

  private struct State {
    var phase = Phase.idle
    var mustStop = false
  }

  private let fileSystem: FileSystem
  private let options: MountOptions
  private let onReady: @Sendable () -> Void
  private let state = Locked(State())
  private let workers = Workers()

  /// - Parameters:
  ///   - fileSystem: what is served.
  ///   - options: where and how.
  ///   - onReady: called once, on a worker, when the kernel has accepted the mount and every call
  ///     on it will be answered.
  package init(
    fileSystem: FileSystem, options: MountOptions,
    onReady: @escaping @Sendable () -> Void = {}
  ) {
    self.fileSystem = fileSystem
    self.options = options
    self.onReady = onReady
  }

  /// Mounts, serves, and returns when the mount is gone.
  ///
  /// While it runs, SIGINT, SIGTERM and SIGHUP end it in good order; a second one leaves behind what
  /// still waits. They are taken by the calling thread, so every other thread must block them.
  /// - Throws: `MountError` when it could not be mounted; nothing is left behind then.
  package func run() throws(MountError) -> Ending {
    let signals = SessionSignals()
    defer { signals.restore() }
    signal(SIGPIPE, SIG_IGN)
    Self.raiseFileLimit()
    let path = try MountPoint.prepare(options)
    let server = Server(fileSystem, options, onReady: onReady)
    let session = try FuseSession(server, options)
    let notifier = Notifier()
    fileSystem.connect(notifier)
    try session.mount(path)
    let me = pthread_self()
    let mayStart = state.withLock { state in
      if !state.mustStop { state.phase = .running(me) }
      return !state.mustStop
    }
    if !mayStart { session.exit() }
    do throws(Errno) {
      try workers.start(options.fastWorkers, session) {
        server.slowLane.answerInterrupted()
      } onEnd: { [self] in
        wake()
      }
      try notifier.start(session)
    } catch {
      session.exit()
      _ = finish(session, server, notifier, signals, path)
      throw .system("serving \(path)", error)
    }
    ReadAhead.raise(for: path)
    let cause = wait(signals)
    session.exit()
    let second = finish(session, server, notifier, signals, path)
    if let second { return .forced(second) }
    return cause.map { .signal($0) } ?? .stopped
  }

  /// Ends the mount from another thread; `run` returns soon after.
  package func stop() {
    state.withLock { $0.mustStop = true }
    wake()
  }

  /// Lets the thread in `run` look again.
  private func wake() {
    // Under the lock: `run` cannot return, and its thread not end, in between.
    state.withLock { state in
      if case .running(let thread) = state.phase { pthread_kill(thread, SessionSignals.wake) }
    }
  }

  /// Waits for a reason to end.
  ///
  /// - Returns: the signal that asked for it; nil when it was `stop` or an unmount from outside.
  private func wait(_ signals: SessionSignals) -> CInt? {
    while true {
      if workers.haveLeft || state.withLock({ $0.mustStop }) { return nil }
      // The bound is for a wake-up that came before this thread was known.
      guard let signal = signals.next(within: .seconds(1)) else { continue }
      if signal != SessionSignals.wake { return signal }
    }
  }

  /// Lets workers leave, gives up what waits, unmounts.
  ///
  /// - Returns: the second signal, when one came.
  private func finish(
    _ session: FuseSession, _ server: Server, _ notifier: Notifier, _ signals: SessionSignals,
    _ path: String
  ) -> CInt? {
    var second: CInt?
    func patiently(_ isDone: () -> Bool) -> Bool {
      let deadline = Instant.now + .seconds(15)
      while !isDone() {
        if second != nil || Instant.now > deadline { return false }
        if let signal = signals.next(within: .milliseconds(5)), signal != SessionSignals.wake {
          second = signal
        }
      }
      return true
    }
    let workersLeft = patiently {
      workers.wake()
      return workers.haveLeft
    }
    server.slowLane.close()
    let isQuiet =
      patiently { server.slowLane.join(until: .now) } && patiently { notifier.close(until: .now) }
    state.withLock { $0.phase = .ended }
    if workersLeft && isQuiet {
      session.unmount()
      server.handles.closeAll()
      return second
    }
    // Somebody still uses the channel, so it must stay open: only the name is taken away.
    Log.warning("\(path): unmounted while some calls were still unanswered")
    do throws(MountError) {
      try Unmount.detach(path, lazily: true)
    } catch {
      Log.error("\(error)")
    }
    session.abandon()
    return second
  }

  /// Every open file takes a descriptor here and another one for its copy.
  private static func raiseFileLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    // Refused: then the limit stays as it is.
    _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
