package import Platform

/// The state of the way to the store: a breaker for calls, and the probes that close it again.
///
/// A call asks for a `Passage` and reports how it ended. The first failure to reach the store opens
/// the breaker: calls are refused at once, those that wait without a byte are stopped, and a
/// monitor thread probes until the store answers. An answer of any status is an answer.
///
/// A call that waits without a byte has the store probed before its time is over, so that a store
/// that is silent about some things, and answers others, is not taken for one that is not reached.
///
/// Everything is behind one lock; the lock of a passage is taken under it. Observers, the probe and
/// cancellations run outside.
package final class Network: Sendable {
  struct State {
    var isDisabled = false
    /// Why the store is not reached; nil when it is.
    var lost: String?
    var isRestoring = false
    var lastAnswer: Instant?

    var passages: [Int: Passage] = [:]
    var lastID = 0

    /// When the next probe is due; nil when none is.
    var nextProbe: Instant?
    var probeFailures = 0
    var running: (cancellation: Cancellation, since: Instant)?
    var lastLinkProbe: Instant?
    var isStopped = false
    /// When the monitor looks whether a call waits in vain; nil when none may.
    var nextLook: Instant?

    var observers: [@Sendable (NetworkChange) -> Void] = []
    var linkObservers: [@Sendable () -> Void] = []
    var untold: [NetworkChange] = []
    var isTelling = false

    var current: NetworkState {
      if isDisabled { return .disabled }
      if lost != nil { return .offline }
      return isRestoring ? .restoring : .online
    }

    /// When the monitor has to act; nil when nothing may be sent.
    var due: Instant? {
      if isDisabled { return nil }
      guard lost == nil, let nextLook else { return nextProbe }
      return nextProbe.map { min($0, nextLook) } ?? nextLook
    }

    /// When a call will have waited without a byte, and the store have said nothing to anyone, for
    /// so long that it must be found out whether it says anything; nil when no call is under way.
    var nextDoubt: Instant? {
      passages.values.filter(\.isCutWhenLost).map { passage in
        max(passage.silentSince, lastAnswer ?? passage.begun) + passage.patience
      }.min()
    }

    /// Marks the store as not reached, and gives back the passages that are to be stopped.
    mutating func lose(_ reason: String) -> [Passage] {
      if lost == nil {
        probeFailures = 0
        nextProbe = .now
      }
      lost = reason
      return passages.values.filter { $0.isCutWhenLost && !$0.isAlive(within: .seconds(1)) }
    }

    mutating func reach() {
      lastAnswer = .now
      lost = nil
      nextProbe = nil
      probeFailures = 0
    }
  }

  let options: NetworkOptions
  let state = Locked(State())
  let links = Locked<LinkWatch?>(nil)

  package init(_ options: NetworkOptions = NetworkOptions()) {
    self.options = options
  }

  deinit {
    stop()
  }

  /// The state as of now. Memory only.
  package var current: NetworkState { state.withLock { $0.current } }

  /// Why the store is not reached, for people; nil when it is.
  package var reason: String? { state.withLock { $0.lost } }

  /// Calls `observer` after each change, in order, on the thread that made it; never under a lock.
  package func onChange(_ observer: @escaping @Sendable (NetworkChange) -> Void) {
    state.withLock { $0.observers.append(observer) }
  }

  /// Switches network access off: nothing is sent any more, and what is on its way is stopped.
  package func disable() {
    let error = StoreError(.disabled, "network access is switched off")
    let (passages, probe) = change("switched off") { state in
      state.isDisabled = true
      state.nextProbe = nil
      return (Array(state.passages.values), state.running?.cancellation)
    }
    for passage in passages { passage.cut(error) }
    probe?.cancel()
  }

  /// Switches network access on again, and probes at once.
  package func enable() {
    change("switched on") { $0.isDisabled = false }
    probeNow()
  }

  /// Tells whether the session waits for its refresh.
  package func noteSession(_ session: SessionState) {
    change("the session is \(session.rawValue)") { $0.isRestoring = session == .restoring }
  }

  // MARK: calls

  /// Lets a call pass, or refuses it at once.
  ///
  /// - Parameter evenOffline: for what finds out whether the store is reached.
  /// - Throws: `StoreError` of kind `disabled`, `offline`, or `timeout` for a call that has spent
  ///   most of its time elsewhere, beside those that found the network lost.
  package func admit(_ call: Call, evenOffline: Bool = false) throws(StoreError) -> Passage {
    let id = try state.withLock { (state) throws(StoreError) -> Int in
      try Self.refuse(state, call, evenOffline)
      state.lastID += 1
      return state.lastID
    }
    let passage = Passage(id: id, call, isCutWhenLost: !evenOffline)
    do throws(StoreError) {
      // The state is looked at again: whoever changes it stops the passages that it finds.
      let isFirst = try state.withLock { (state) throws(StoreError) -> Bool in
        try Self.refuse(state, call, evenOffline)
        state.passages[id] = passage
        let doubt = passage.begun + passage.patience
        guard passage.isCutWhenLost, state.nextLook.map({ doubt < $0 }) ?? true else {
          return false
        }
        state.nextLook = doubt
        return true
      }
      if isFirst { state.wakeAll() }
    } catch {
      _ = passage.end(nil)
      throw error
    }
    return passage
  }

  private static func refuse(_ state: State, _ call: Call, _ evenOffline: Bool)
    throws(StoreError)
  {
    if state.isDisabled { throw StoreError(.disabled, "network access is switched off") }
    if let lost = state.lost, !evenOffline {
      throw Passage.lost(lost, waitingSince: call.waitingSince, call.timeout)
    }
  }

  /// Takes a call's passage back without judging how it ended.
  ///
  /// - Returns: the error that the caller is to learn.
  package func release(_ passage: Passage, _ error: StoreError?) -> StoreError? {
    state.withLock { _ = $0.passages.removeValue(forKey: passage.id) }
    return passage.end(error)
  }

  /// Takes a call's passage back, and learns from how it ended.
  ///
  /// - Returns: the error that the caller is to learn.
  package func finish(_ passage: Passage, _ error: StoreError?) -> StoreError? {
    let told = release(passage, error)
    switch Evidence(told) {
    case .answer: change("the store answered") { $0.reach() }
    case .silence where passage.isCut: break
    case .silence: judge(told?.message ?? "", told?.kind == .timeout ? passage : nil)
    case .none: break
    }
    return told
  }

  /// Decides whether a failure speaks of the whole network or of one transfer.
  ///
  /// The network counts as alive when another transfer receives bytes at this moment, or, for a
  /// time-out, when any answer came in the later half of the wait, or the call had spent its time
  /// before it came here; a probe then makes sure.
  ///
  /// - Parameter late: the call that was not answered in time; nil for another failure.
  private func judge(_ reason: String, _ late: Passage?) {
    let window = late.map { Span(nanoseconds: $0.timeout.nanoseconds / 2) } ?? .milliseconds(500)
    let passages = change(reason) { state -> [Passage] in
      let isAnswered =
        late != nil && (state.lastAnswer.map { Instant.now.since($0) < window } ?? false)
      guard !isAnswered, late?.hasWaited ?? true,
        !state.passages.values.contains(where: { $0.isAlive(within: window) })
      else {
        state.nextProbe = .now
        return []
      }
      return state.lose(reason)
    }
    for passage in passages { passage.cutLost(reason) }
  }

  // MARK: changes

  /// Changes the state, wakes the monitor, and tells the observers when the sum has changed.
  @discardableResult
  func change<Result: Sendable>(_ reason: String, _ body: (inout State) -> Result) -> Result {
    let (result, mustWake) = state.withLock { state in
      let before = (sum: state.current, due: state.due)
      let result = body(&state)
      if before.sum != state.current {
        state.untold.append(
          NetworkChange(from: before.sum, to: state.current, reason: reason))
      }
      return (result, before.due != state.due)
    }
    if mustWake { state.wakeAll() }
    tell()
    return result
  }

  /// Tells what is untold; when another thread is telling already, that one goes on with it.
  private func tell() {
    var isFirst = true
    while true {
      let isStart = isFirst
      isFirst = false
      let next = state.withLock { state -> (NetworkChange, [@Sendable (NetworkChange) -> Void])? in
        if isStart, state.isTelling { return nil }
        guard !state.untold.isEmpty else {
          state.isTelling = false
          return nil
        }
        state.isTelling = true
        return (state.untold.removeFirst(), state.observers)
      }
      guard let (change, observers) = next else { return }
      Log.info("network: \(change.from.rawValue) -> \(change.to.rawValue): \(change.reason)")
      for observer in observers { observer(change) }
    }
  }
}

/// What the end of a call says about the way to the store.
enum Evidence {
  /// The store said something.
  case answer
  /// The store was not reached, or said nothing.
  case silence
  /// It may never have gone out, or ended by our own doing.
  case none

  init(_ error: StoreError?) {
    switch error?.kind {
    case nil, .notFound, .refused, .conflict, .exists, .tooLarge, .typeRefused, .throttled,
      .server:
      self = .answer
    case .connectivity, .timeout: self = .silence
    case .sessionExpired, .keyRefused, .damaged, .cancelled, .disabled, .offline, .unsupported,
      .noRoom:
      self = .none
    }
  }
}
