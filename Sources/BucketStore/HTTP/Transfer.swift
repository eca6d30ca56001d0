import Platform

/// When transfers last moved a byte, by kind: they wait for slots apart, so that an answer to a
/// question is no sign for who waits behind silent objects.
struct TransferPulses: Sendable {
  var questions = Locked(Instant.now)
  var objects = Locked(Instant.now)
}

/// One request on its way: what the thread that waits and the net thread share.
///
/// The waiting thread enforces the deadline and the cancellation itself, so it returns in time even
/// while the net thread is busy. It leaves by closing the transfer, after which no call of its sink or
/// source begins; one that runs at that moment is waited for. Such calls run outside the lock.
final class Transfer: Sendable {
  /// How waiting ended.
  enum Outcome: Sendable {
    case answered(HTTPResponse)
    /// The net thread gave up, and has let go of the request.
    case failed(StoreError)
    /// The waiting thread left first: the net thread must still let go of the request.
    case left(StoreError.Kind)
  }

  private enum Turn {
    case over(Outcome)
    case again
  }

  private struct State {
    var outcome: Outcome?
    var isCancelled = false
    /// The waiting thread has left.
    var isClosed = false
    /// The net thread is inside the caller's sink or source.
    var isInCaller = false
    /// The waiting thread wants to leave as soon as the sink or source has returned.
    var wantsWakeUp = false
    var lastProgress: Instant
    /// It waits for a slot.
    var isQueued = true
  }

  let request: HTTPRequest
  let target: HTTPTarget
  let sink: (any HTTPSink)?
  let timeout: Span
  /// Whether it carries an object's bytes, one way or the other.
  let isBulk: Bool
  /// Whether it sends them.
  let isUpload: Bool
  private let state: Locked<State>
  private let made = Instant.now
  /// When any transfer of its kind, bulk or not, last moved a byte. A leaf: it may be locked under
  /// `state`.
  private let pulse: Locked<Instant>

  init(
    _ request: HTTPRequest, to target: HTTPTarget, sink: (any HTTPSink)?, _ call: Call,
    pulses: TransferPulses
  ) {
    self.request = request
    self.target = target
    self.sink = sink
    timeout = call.timeout
    state = Locked(State(lastProgress: call.waitingSince))
    isUpload = if case .source = request.payload { true } else { false }
    isBulk = isUpload || sink != nil
    pulse = isBulk ? pulses.objects : pulses.questions
  }

  // MARK: the waiting thread

  /// Waits for the answer, for the deadline without progress, or for `cancel`.
  ///
  /// While it waits for a slot, the progress of the others is its own: they are what it waits for.
  func wait() -> Outcome {
    while true {
      // A call of the sink has no deadline: it is our own code, and `withCaller` wakes us after it.
      let deadline = state.withLock { $0.isInCaller ? nil : lastSign($0) + timeout }
      let turn = state.wait(until: deadline) { state -> Turn? in
        let isOverdue = Instant.now.since(lastSign(state)) >= timeout
        if state.isInCaller {
          state.wantsWakeUp = state.isCancelled || isOverdue || deadline == nil
          return nil
        }
        if let outcome = state.outcome { return .over(outcome) }
        guard state.isCancelled || isOverdue else { return deadline == nil ? .again : nil }
        state.isClosed = true
        return .over(.left(state.isCancelled ? .cancelled : .timeout))
      }
      if case .over(let outcome) = turn { return outcome }
      // The deadline has moved on meanwhile.
      sink?.goesOn()
    }
  }

  /// What others moved before it was made is none of its progress.
  private func lastSign(_ state: State) -> Instant {
    guard state.isQueued else { return state.lastProgress }
    let others = pulse.withLock { $0 }
    return others > made ? max(state.lastProgress, others) : state.lastProgress
  }

  /// Ends the wait; from any thread.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    state.wakeAll()
  }

  // MARK: the net thread

  var isClosed: Bool { state.withLock { $0.isClosed } }

  var lastProgress: Instant { state.withLock { $0.lastProgress } }

  /// It has a slot: from now on its own progress counts, beginning with that of the others.
  ///
  /// Where nothing at all moved since it was made, its deadline stays what it was.
  func start() {
    state.withLock { state in
      state.lastProgress = lastSign(state)
      state.isQueued = false
    }
  }

  /// A byte went out or came in: the deadline starts anew.
  ///
  /// - Returns: false when nobody waits any more.
  func noteProgress() -> Bool {
    pulse.withLock { $0 = .now }
    return state.withLock { state in
      state.lastProgress = .now
      return !state.isClosed && !state.isCancelled
    }
  }

  /// Calls the sink, unless the waiting thread has left.
  ///
  /// - Returns: nil when it has left, else what `body` returned.
  func withSink(_ body: (any HTTPSink) -> Bool) -> Bool? {
    guard let sink else { return nil }
    return withCaller { body(sink) }
  }

  /// Calls what the caller has given along, outside the lock, unless the waiting thread has left.
  ///
  /// - Returns: nil when it has left, else what `body` returned.
  func withCaller<Result>(_ body: () -> Result) -> Result? {
    pulse.withLock { $0 = .now }
    let mayCall = state.withLock { state in
      guard !state.isClosed, !state.isCancelled else { return false }
      state.lastProgress = .now
      state.isInCaller = true
      return true
    }
    guard mayCall else { return nil }
    let result = body()
    let mustWake = state.withLock { state in
      state.isInCaller = false
      state.lastProgress = .now
      defer { state.wantsWakeUp = false }
      return state.wantsWakeUp
    }
    if mustWake { state.wakeAll() }
    return result
  }

  func finish(_ outcome: Outcome) {
    state.withLock { $0.outcome = outcome }
    state.wakeAll()
  }
}
