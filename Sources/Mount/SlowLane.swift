import FileSystem
import Platform

/// Where requests go that take longer, so that the fast workers never wait: a line for those that
/// something kept can answer, and one for those that only the store can.
///
/// Each line has threads of its own, so what is kept never stands behind what is not. A request
/// keeps its number, its deadline and its cancellation when it moves from one to the other. Nothing
/// is answered and nobody is cancelled under the lock.
final class SlowLane: Sendable {
  private struct State {
    var waiting: [UInt: Cancellation] = [:]
    /// Given up while in line, to be answered by the next fast worker that looks.
    var interrupted: [WaitingRequest] = []
    var lastID: UInt = 0
  }

  private let state: Locked<State>
  private let brief: WaitingLine
  private let slow: WaitingLine
  private let timeout: Span

  /// - Parameters:
  ///   - brief: the most threads for requests that something kept can answer.
  ///   - slow: the most threads for requests that wait for the store.
  ///   - timeout: how long a request may stand in line.
  init(brief: Int, slow: Int, timeout: Span) {
    self.timeout = timeout
    let state = Locked(State())
    self.state = state
    let drop: @Sendable (WaitingRequest) -> Void = { waiting in
      state.withLock { _ = $0.waiting.removeValue(forKey: waiting.id) }
    }
    let cold = WaitingLine(
      name: "fuse-slow", limit: slow, serve: { Self.serve($0, state, further: nil) }, drop: drop)
    self.slow = cold
    self.brief = WaitingLine(
      name: "fuse-brief", limit: brief, serve: { Self.serve($0, state, further: cold) },
      drop: drop)
  }

  /// Takes over a request; it will be answered by another thread.
  ///
  /// - Parameter lane: `brief` or `slow`.
  func accept(
    _ request: consuming Request, _ operation: @escaping Operation, _ server: Server, on lane: Lane
  ) {
    let cancellation = Cancellation()
    let id = state.withLock { state in
      state.lastID += 1
      state.waiting[state.lastID] = cancellation
      return state.lastID
    }
    // The time in line counts too.
    let pulse = Pulse()
    let caller = Caller(
      processID: request.processID, lane: lane,
      call: Call(timeout: timeout, cancellation: cancellation, pulse: pulse))
    // Registered before any other thread can answer: the request may be gone right after.
    request.onInterrupt(id) { request, number in Server.interrupted(request, number) }
    let waiting = WaitingRequest(
      id, request, caller, operation, server, deadline: caller.call.deadline)
    Self.add(waiting, to: lane == .brief ? brief : slow, state)
  }

  private static func add(
    _ waiting: WaitingRequest, to line: WaitingLine, _ state: Locked<State>
  ) {
    guard line.add(waiting) else {
      giveUp(waiting, state)
      return
    }
    // Whoever interrupted it a moment ago did not find it in the line.
    if waiting.caller.call.cancellation.isCancelled, let late = line.withdraw(waiting.id) {
      giveUp(late, state)
    }
  }

  /// Stops a request that the kernel has interrupted; one that was answered is not known any more.
  func interrupt(_ id: UInt) {
    let cancellation = state.withLock { $0.waiting.removeValue(forKey: id) }
    if let request = brief.withdraw(id) ?? slow.withdraw(id) {
      state.withLock { $0.interrupted.append(request) }
    }
    cancellation?.cancel()
  }

  /// Answers what was interrupted before its turn came.
  ///
  /// Called by the fast workers after each request: the interrupt itself comes in under a lock of
  /// libfuse, where the request must not be answered.
  func answerInterrupted() {
    let interrupted = state.withLock { state -> [WaitingRequest] in
      guard !state.interrupted.isEmpty else { return [] }
      defer { state.interrupted = [] }
      return state.interrupted
    }
    for request in interrupted { request.giveUp() }
  }

  /// Takes no more, gives up what is in line, cancels what runs.
  func close() {
    let running = state.withLock { state -> [Cancellation] in
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    for request in brief.close() + slow.close() { request.giveUp() }
    for cancellation in running { cancellation.cancel() }
    answerInterrupted()
  }

  /// Waits until every thread has left.
  ///
  /// - Returns: false when some operation has not come back by the deadline.
  func join(until deadline: Instant) -> Bool {
    brief.join(until: deadline) && slow.join(until: deadline)
  }

  /// Runs a request whose turn has come.
  ///
  /// - Parameter further: the line for those that only the store can answer.
  private static func serve(
    _ waiting: WaitingRequest, _ state: Locked<State>, further: WaitingLine?
  ) {
    guard let request = waiting.take() else { return }
    // Interrupted before it could be told so.
    guard !waiting.caller.call.cancellation.isCancelled else {
      state.withLock { _ = $0.waiting.removeValue(forKey: waiting.id) }
      request.fail(Failure(.interrupted, "interrupted while it waited for its turn"))
      return
    }
    switch request.serve(waiting.caller, waiting.operation, waiting.server) {
    case .answered: state.withLock { _ = $0.waiting.removeValue(forKey: waiting.id) }
    case .moves(let unanswered, let lane):
      var caller = waiting.caller
      caller.lane = lane
      let moved = WaitingRequest(
        waiting.id, unanswered, caller, waiting.operation, waiting.server,
        deadline: waiting.deadline)
      if let further { add(moved, to: further, state) } else { giveUp(moved, state) }
    }
  }

  private static func giveUp(_ waiting: WaitingRequest, _ state: Locked<State>) {
    state.withLock { _ = $0.waiting.removeValue(forKey: waiting.id) }
    waiting.giveUp()
  }
}
