import CLinux
import Glibc
import Platform

/// The fast workers: our own loop over libfuse's channel.
///
/// libfuse's own loop ends its threads with pthread_cancel(3), which Swift code and the thread
/// sanitizer do not survive. Here a worker that sleeps in the kernel is woken by a signal that is
/// caught and does nothing, sent again until it has left, for it may arrive just before the sleep.
final class Workers: Sendable {
  private struct State {
    var threads: [Int: pthread_t] = [:]
    var started = 0
    var left = 0
  }

  private let state = Locked(State())
  private static let wakeSignal = SIGUSR2

  /// Starts workers.
  ///
  /// - Parameter onEnd: called by the last worker that leaves.
  /// - Throws: `Errno` when not even one thread could be started.
  func start(
    _ count: Int, _ session: FuseSession, after: @escaping @Sendable () -> Void,
    onEnd: @escaping @Sendable () -> Void
  ) throws(Errno) {
    catchWakeSignal()
    let count = min(max(count, 1), 8)
    state.withLock { $0.started = count }
    for number in 0..<count {
      do throws(Errno) {
        _ = try Thread(name: "fuse-\(number)") {
          self.enter(number)
          session.work(after)
          if self.leave(number) { onEnd() }
        }
      } catch {
        let missing = count - number
        let none = state.withLock { state in
          state.started -= missing
          return state.started == 0
        }
        if none { throw error }
        Log.warning("only \(number) of \(count) workers could be started: \(error)")
        break
      }
    }
  }

  var haveLeft: Bool { state.withLock { $0.left >= $0.started } }

  /// Wakes every worker that sleeps in the kernel. Each that finds the session ended leaves.
  func wake() {
    // Under the lock, so that no thread leaves between being found and being signalled.
    state.withLock { state in
      for thread in state.threads.values { pthread_kill(thread, Self.wakeSignal) }
    }
  }

  private func enter(_ number: Int) {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, Self.wakeSignal)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    let thread = pthread_self()
    state.withLock { $0.threads[number] = thread }
  }

  private func leave(_ number: Int) -> Bool {
    state.withLock { state in
      state.threads[number] = nil
      state.left += 1
      return state.left >= state.started
    }
  }

  private func catchWakeSignal() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigemptyset(&action.sa_mask)
    // Without SA_RESTART the sleeping read ends with EINTR.
    action.sa_flags = 0
    sigaction(Self.wakeSignal, &action, nil)
  }
}
