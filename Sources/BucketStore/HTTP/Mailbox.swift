import CCurl
import Platform

/// What other threads tell the net thread, and how they wake it.
///
/// The lock is a leaf: nothing else is locked under it. The wake-up happens under it, so that the
/// multi handle cannot be freed in between; it is one write to a pipe that never blocks
/// (curl_multi_wakeup(3)).
final class Mailbox: Sendable {
  /// Letters since the last look.
  struct Letters: Sendable {
    var submitted: [Transfer] = []
    /// Transfers whose waiting thread has left.
    var abandoned: [(transfer: Transfer, timedOut: Bool)] = []
    /// Idle connections are not to be used again.
    var distrust = false
    var stop = false

    var isEmpty: Bool { submitted.isEmpty && abandoned.isEmpty && !distrust && !stop }
  }

  /// The multi handle, for waking alone.
  ///
  /// `@unchecked Sendable`: curl_multi_wakeup is the one call that libcurl allows from any thread.
  private struct Bell: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer
  }

  private struct State {
    var letters = Letters()
    var bell: Bell?
    var isShut = false
  }

  private let state = Locked(State())

  /// - Throws: `StoreError` of kind `cancelled` when nobody reads the letters any more.
  func submit(_ transfer: Transfer) throws(StoreError) {
    let accepted = post { $0.submitted.append(transfer) }
    guard accepted else { throw StoreError(.cancelled, "the network client has been shut down") }
  }

  func abandon(_ transfer: Transfer, timedOut: Bool) {
    // When nobody reads letters any more, the transfer has been let go of already.
    _ = post { $0.abandoned.append((transfer, timedOut)) }
  }

  func distrust() {
    _ = post { $0.distrust = true }
  }

  func stop() {
    _ = post { $0.stop = true }
  }

  // MARK: the net thread

  /// From now on the given multi handle is woken.
  func open(_ multi: UnsafeMutableRawPointer) {
    let bell = Bell(multi: multi)
    state.withLock { $0.bell = bell }
  }

  func collect() -> Letters {
    state.withLock { state in
      defer { state.letters = Letters() }
      return state.letters
    }
  }

  /// Takes no more letters, wakes nobody any more.
  ///
  /// - Returns: those that nobody has looked at.
  func shut() -> Letters {
    state.withLock { state in
      state.isShut = true
      state.bell = nil
      defer { state.letters = Letters() }
      return state.letters
    }
  }

  private func post(_ write: (inout Letters) -> Void) -> Bool {
    state.withLock { state in
      guard !state.isShut else { return false }
      let wasEmpty = state.letters.isEmpty
      write(&state.letters)
      if wasEmpty, let bell = state.bell {
        // It fails only when the handle is not one; the bell is gone before the handle is.
        _ = curl_multi_wakeup(bell.multi)
      }
      return true
    }
  }
}
