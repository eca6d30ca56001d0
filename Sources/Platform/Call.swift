/// The bounds of one piece of work that may wait: how long without progress, and who can stop it.
package struct Call: Sendable {
  /// How long the other side may stay silent before the call fails with a time-out.
  package var timeout: Span
  /// Stops the call from another thread.
  package var cancellation: Cancellation
  /// Since when it has been waiting, for work that waited elsewhere before; nil for what begins to
  /// wait where it is handed over.
  package var pulse: Pulse?

  package init(
    timeout: Span = .seconds(10), cancellation: Cancellation = Cancellation(), pulse: Pulse? = nil
  ) {
    self.timeout = timeout
    self.cancellation = cancellation
    self.pulse = pulse
  }

  /// The moment from which its time counts.
  package var waitingSince: Instant { pulse?.last ?? .now }

  /// When its time is over, if nothing gets on until then.
  package var deadline: Instant { waitingSince + timeout }

  /// The other side has said something: its time begins anew.
  package func getsOn() { pulse?.beat() }
}

/// When a piece of work last got on, wherever it has been waiting since.
package final class Pulse: Sendable {
  private let moment: Locked<Instant>

  /// - Parameter moment: since when it waits.
  package init(_ moment: Instant = .now) {
    self.moment = Locked(moment)
  }

  /// When it last got on; from there its time counts.
  package var last: Instant { moment.withLock { $0 } }

  /// It gets on now.
  package func beat() { moment.withLock { $0 = .now } }
}

/// Stops work from another thread, once and for good.
///
/// Handlers run on the thread that cancels, outside the lock, each at most once.
package final class Cancellation: Sendable {
  private struct State {
    var cancelled = false
    var nextID = 0
    var handlers: [Int: @Sendable () -> Void] = [:]
  }

  private let state = Locked(State())

  package init() {}

  /// Whether `cancel` was called. It never goes back to false.
  package var isCancelled: Bool { state.withLock { $0.cancelled } }

  /// Stops the work: wakes who sleeps, then runs the handlers on this thread.
  package func cancel() {
    let handlers = state.withLock { state -> [@Sendable () -> Void] in
      state.cancelled = true
      defer { state.handlers = [:] }
      return Array(state.handlers.values)
    }
    state.wakeAll()
    for handler in handlers { handler() }
  }

  /// Registers what to do on cancelling; runs it at once when that has happened already.
  ///
  /// - Returns: the number to give to `remove`.
  package func onCancel(_ handler: @escaping @Sendable () -> Void) -> Int {
    let id = state.withLock { state -> Int? in
      if state.cancelled { return nil }
      state.nextID += 1
      state.handlers[state.nextID] = handler
      return state.nextID
    }
    guard let id else {
      handler()
      return 0
    }
    return id
  }

  /// Forgets a handler. It may still be running on the thread that cancels.
  package func remove(_ id: Int) {
    state.withLock { _ = $0.handlers.removeValue(forKey: id) }
  }

  /// Sleeps until the deadline or until cancelled.
  ///
  /// - Returns: true when cancelled.
  package func sleep(until deadline: Instant) -> Bool {
    state.wait(until: deadline) { $0.cancelled ? true : nil } ?? false
  }
}
