import BucketStore
import Platform

/// Bounds how long the store is waited for by callers whom something kept can answer.
///
/// The question goes on when its caller has left, so that what it brings is kept for the next one:
/// on a slow network what is shown lags behind by one look, instead of never being renewed. While a
/// question has been silent for that long, and no other was answered since it began, callers with
/// something kept are not made to wait at all: what is dead is found out once, not by everyone.
final class Patience: Sendable {
  private struct State {
    var lastID = 0
    /// When the questions began that have been silent for too long.
    var silent: [Int: Instant] = [:]
    var lastAnswer = Instant(nanoseconds: 0)
  }

  private let limit: Span
  private let pool = WorkerPool(name: "patience", limit: 64)
  private let state = Locked(State())

  /// - Parameter limit: how long a caller waits who could be answered from what is kept.
  init(limit: Span) {
    self.limit = limit
  }

  /// Puts a question that something kept could answer too.
  ///
  /// - Parameters:
  ///   - call: who asks; its cancellation ends the waiting, not the question.
  ///   - question: waits for the store, on a thread of the pool.
  ///   - late: takes an answer that nobody waits for any more.
  /// - Returns: nil when what is kept must do.
  /// - Throws: `StoreError`, what the question threw; `cancelled`.
  func ask<Answer: Sendable>(
    _ call: Call, _ question: @escaping @Sendable (Call) throws(StoreError) -> Answer,
    late: @escaping @Sendable (Answer) -> Void = { _ in }
  ) throws(StoreError) -> Answer? {
    guard let id = begin() else { return nil }
    let begun = Instant.now
    let timeout = call.timeout
    let exchange = Exchange<Answer>()
    let isRunning = pool.run { [self] in
      let result: Result<Answer, StoreError>
      do throws(StoreError) {
        result = .success(try question(Call(timeout: timeout)))
      } catch {
        result = .failure(error)
      }
      let isLate = exchange.finish(result)
      end(id, isAnswer: result.isAnswer)
      if isLate, case .success(let answer) = result { late(answer) }
    }
    guard isRunning else { return nil }
    if let result = exchange.wait(until: begun + limit, call.cancellation) {
      return try result.get()
    }
    // Noted before it is left: whoever ends it afterwards takes the note back.
    state.withLock { $0.silent[id] = begun }
    guard let result = exchange.leave() else {
      if call.cancellation.isCancelled {
        throw StoreError(.cancelled, "interrupted while the store was asked")
      }
      return nil
    }
    state.withLock { _ = $0.silent.removeValue(forKey: id) }
    return try result.get()
  }

  /// Takes no more questions; those that are on their way end with the store's calls.
  func close() {
    pool.close(until: .now)
  }

  /// - Returns: the new question's number; nil when it is of no use to ask now.
  private func begin() -> Int? {
    state.withLock { state in
      if state.silent.values.contains(where: { $0 > state.lastAnswer }) { return nil }
      state.lastID += 1
      return state.lastID
    }
  }

  private func end(_ id: Int, isAnswer: Bool) {
    state.withLock { state in
      state.silent[id] = nil
      if isAnswer { state.lastAnswer = .now }
    }
  }
}

/// One question between the thread that waits for it and the one that asks.
private final class Exchange<Answer: Sendable>: Sendable {
  private struct State {
    var result: Result<Answer, StoreError>?
    var isLeft = false
  }

  private let state = Locked(State())

  /// - Returns: whether the one who waited has left.
  func finish(_ result: Result<Answer, StoreError>) -> Bool {
    let isLeft = state.withLock { state in
      state.result = result
      return state.isLeft
    }
    state.wakeAll()
    return isLeft
  }

  /// - Returns: nil when the time ran out, or the caller was interrupted.
  func wait(until deadline: Instant, _ cancellation: Cancellation) -> Result<Answer, StoreError>? {
    let handler = cancellation.onCancel { [state] in state.wakeAll() }
    defer { cancellation.remove(handler) }
    let outcome = state.wait(until: deadline) { state -> Result<Answer, StoreError>?? in
      if let result = state.result { return .some(result) }
      return cancellation.isCancelled ? .some(nil) : nil
    }
    return outcome ?? nil
  }

  /// Waits no more.
  ///
  /// - Returns: the result when it has come at the last moment.
  func leave() -> Result<Answer, StoreError>? {
    state.withLock { state in
      state.isLeft = state.result == nil
      return state.result
    }
  }
}

extension Result where Failure == StoreError {
  /// Whether the store has said something, be it a refusal.
  fileprivate var isAnswer: Bool {
    switch self {
    case .success: true
    case .failure(let error): !error.kind.isConnectivity && error.kind != .offline
    }
  }
}
