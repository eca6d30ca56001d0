import FileSystem
import Platform

/// A request that must wait, with all it needs to be served by another thread.
final class WaitingRequest: Sendable {
  let id: UInt
  let caller: Caller
  let operation: Operation
  let server: Server
  /// When its turn must have come, lest it waits longer in the queue than it may for the store.
  let deadline: Instant
  private let request: Locked<Request?>

  init(
    _ id: UInt, _ request: consuming Request, _ caller: Caller, _ operation: @escaping Operation,
    _ server: Server
  ) {
    self.id = id
    self.caller = caller
    self.operation = operation
    self.server = server
    deadline = .now + caller.call.timeout
    self.request = Locked(request)
  }

  /// The request, for whoever answers it; nil when somebody has taken it.
  func take() -> Request? { request.withLock { $0.take() } }

  /// Answers that it was given up.
  func giveUp() {
    guard let request = take() else { return }
    request.fail(Failure(.interrupted, "interrupted while it waited for its turn"))
  }
}

/// The threads on which operations may wait, so that the fast workers never do.
///
/// Grows by a thread when a request comes and none is idle, up to a bound; beyond it requests
/// queue up, oldest first. An idle thread leaves after a while. Nothing is answered and nobody is
/// cancelled under the lock.
final class SlowLane: Sendable {
  private struct State {
    /// Ids in the order of coming; an id that `queued` lacks has been given up.
    var order: [UInt] = []
    var queued: [UInt: WaitingRequest] = [:]
    var waiting: [UInt: Cancellation] = [:]
    /// Given up while queued, to be answered by the next fast worker that looks.
    var interrupted: [WaitingRequest] = []
    var lastID: UInt = 0
    var threads = 0
    var idle = 0
    var isClosed = false
  }

  private let state = Locked(State())
  private let limit: Int
  private let timeout: Span
  private static let idleTime = Span.seconds(30)

  init(limit: Int, timeout: Span) {
    self.limit = max(1, limit)
    self.timeout = timeout
  }

  /// Takes over a request; it will be answered by a thread of this lane.
  func accept(
    _ request: consuming Request, _ operation: @escaping Operation, _ server: Server
  ) {
    let cancellation = Cancellation()
    let id = state.withLock { state in
      state.lastID += 1
      state.waiting[state.lastID] = cancellation
      return state.lastID
    }
    let caller = Caller(
      processID: request.processID, lane: .slow,
      call: Call(timeout: timeout, cancellation: cancellation))
    // Registered before any other thread can answer: the request may be gone right after.
    request.onInterrupt(id) { request, number in Server.interrupted(request, number) }
    let waiting = WaitingRequest(id, request, caller, operation, server)
    let growing = state.withLock { state -> Bool in
      // Interrupted, or closed, since it was registered.
      guard state.waiting[id] != nil, !state.isClosed else {
        state.interrupted.append(waiting)
        return false
      }
      state.queued[id] = waiting
      state.order.append(id)
      guard state.queued.count > state.idle, state.threads < limit else { return false }
      state.threads += 1
      return true
    }
    state.wakeAll()
    if growing { grow() }
  }

  /// Stops a request that the kernel has interrupted; one that was answered is not known any more.
  func interrupt(_ id: UInt) {
    let cancellation = state.withLock { state -> Cancellation? in
      if let request = state.queued.removeValue(forKey: id) { state.interrupted.append(request) }
      return state.waiting.removeValue(forKey: id)
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

  /// Takes no more, gives up what is queued, cancels what runs.
  func close() {
    let running = state.withLock { state -> [Cancellation] in
      state.isClosed = true
      state.interrupted += state.queued.values
      state.queued = [:]
      state.order = []
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    state.wakeAll()
    for cancellation in running { cancellation.cancel() }
    answerInterrupted()
  }

  /// Waits until every thread has left.
  ///
  /// - Returns: false when some operation has not come back by the deadline.
  func join(until deadline: Instant) -> Bool {
    state.wait(until: deadline) { $0.threads == 0 ? true : nil } ?? false
  }

  private func grow() {
    do throws(Errno) {
      _ = try Thread(name: "fuse-slow") { self.run() }
    } catch {
      let stranded = state.withLock { state -> [WaitingRequest] in
        state.threads -= 1
        guard state.threads == 0 else { return [] }
        defer {
          for id in state.queued.keys { state.waiting[id] = nil }
          state.queued = [:]
          state.order = []
        }
        return Array(state.queued.values)
      }
      Log.error("no further thread could be started: \(error)")
      for waiting in stranded {
        if let request = waiting.take() { request.fail(Failure(error, "no thread to wait on")) }
      }
    }
  }

  private func run() {
    while let waiting = next() {
      guard let request = waiting.take() else { continue }
      defer { state.withLock { _ = $0.waiting.removeValue(forKey: waiting.id) } }
      if Instant.now > waiting.deadline {
        request.fail(Failure(.timedOut, "its turn did not come in time", level: .info))
        continue
      }
      if let unanswered = request.serve(waiting.caller, waiting.operation, waiting.server) {
        unanswered.fail(Failure(.io, "an operation would not wait where it may", level: .error))
      }
    }
    state.wakeAll()
  }

  /// The next request; nil when the thread shall leave, which is counted already.
  private func next() -> WaitingRequest? {
    state.withLock { $0.idle += 1 }
    let found = state.wait(until: .now + Self.idleTime) { state -> WaitingRequest?? in
      while let id = state.order.first {
        state.order.removeFirst()
        guard let request = state.queued.removeValue(forKey: id) else { continue }
        state.idle -= 1
        return request
      }
      guard state.isClosed else { return nil }
      return .some(nil)
    }
    if let request = found ?? nil { return request }
    return state.withLock { state in
      state.idle -= 1
      // A request may have come between the end of the wait and here.
      while let id = state.order.first {
        state.order.removeFirst()
        if let request = state.queued.removeValue(forKey: id) { return request }
      }
      state.threads -= 1
      return nil
    }
  }
}
