import Glibc

/// State behind a lock with a condition: the project's only lock.
///
/// A pthread mutex, since a condition needs one and since the thread sanitizer understands it.
/// Order between locks: tree, then one file, then queues. Under a lock nobody replies to the
/// kernel, notifies it, or waits for the network.
///
/// `@unchecked Sendable`: the value is reached only inside `withLock`, which holds the mutex.
package final class Locked<State: ~Copyable>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var state: State

  package init(_ state: consuming sending State) {
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
    self.state = state
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Runs `body` with the state, alone. Short: no system call that can block.
  package func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending State) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state)
  }

  /// Wakes every thread that waits in `wait`. Call it after the state was changed.
  package func wakeAll() {
    settle()
    pthread_cond_broadcast(condition)
  }

  /// Wakes one of the threads that wait in `wait`, whichever. Call it after the state was changed.
  ///
  /// Right where all who wait would do the same with what has come, and one of them is enough:
  /// whoever waits for something else may be the one that is woken.
  package func wakeOne() {
    settle()
    pthread_cond_signal(condition)
  }

  /// Lets a thread that has looked, but does not sleep yet, get to sleep, so that it can be woken:
  /// it may have looked at something that this lock does not guard, as a cancellation. The lock is
  /// free again when others are woken, so that they do not wake only to wait for it.
  private func settle() {
    pthread_mutex_lock(mutex)
    pthread_mutex_unlock(mutex)
  }

  /// Waits until `body` gives a result, asking it again after each `wakeAll`.
  ///
  /// - Parameters:
  ///   - deadline: the moment after which nil is returned; nil waits for ever.
  ///   - body: looks at the state, and may change it; nil means not yet.
  /// - Returns: what `body` gave, or nil once the deadline has passed.
  package func wait<Result, Failure: Error>(
    until deadline: Instant? = nil,
    _ body: (inout sending State) throws(Failure) -> sending Result?
  ) throws(Failure) -> sending Result? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = try body(&state) { return result }
      if let deadline {
        var time = deadline.timespec
        if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT {
          return try body(&state)
        }
      } else {
        pthread_cond_wait(condition, mutex)
      }
    }
  }

  /// Waits as `wait(until:_:)`, and no longer than until the waiting is cancelled.
  ///
  /// Whoever is cancelled takes nothing more: `body` is not asked again.
  /// - Returns: what `body` gave, or nil once the deadline has passed or the waiting was cancelled.
  package func wait<Result, Failure: Error>(
    until deadline: Instant? = nil, _ cancellation: Cancellation,
    _ body: (inout sending State) throws(Failure) -> sending Result?
  ) throws(Failure) -> sending Result? {
    let handler = cancellation.onCancel { self.wakeAll() }
    defer { cancellation.remove(handler) }
    let outcome = try wait(until: deadline) { (state) throws(Failure) -> Result?? in
      if cancellation.isCancelled { return .some(nil) }
      guard let result = try body(&state) else { return nil }
      return .some(result)
    }
    return outcome ?? nil
  }
}
