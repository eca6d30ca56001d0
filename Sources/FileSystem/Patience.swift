import BucketStore
import Platform

/// Bounds how long the store is waited for: by callers whom something kept can answer, and by those
/// for whom only the store can, once it is known to fail.
///
/// The question goes on when its caller has left, so that what it brings is kept for the next one:
/// on a slow network what is shown lags behind by one look, instead of never being renewed. What is
/// dead or failing is found out once, not by everyone; callers with something kept are not made to
/// wait at all
/// - while a question has been silent for that long, and no other was answered since it began;
/// - after a question has failed, for seconds that double from failure to failure; then one
///   question goes on behind, and its answer ends it.
///
/// Callers with nothing kept wait for their own answer, up to their deadline. Only when questions
/// about different things have failed one after the other, with no answer in between and for a
/// second at least, do they learn that at once, without asking: one of them asks from time to time,
/// and its answer ends it. One thing that is broken says nothing of the others.
///
/// Listings and contents are judged apart, since a store may fail with one and not with the other.
final class Patience: Sendable {
  /// What is asked about.
  enum Subject: Sendable, CaseIterable {
    case names
    case contents
  }

  private struct Record {
    var lastAnswer = Instant(nanoseconds: 0)
    /// Failures in a row.
    var failures = 0
    var failed = Instant(nanoseconds: 0)
    /// Nobody asks before this moment.
    var rests = Instant(nanoseconds: 0)
    /// The question that finds out whether the store does again.
    var trial: Int?
    var reason: StoreError?
    /// What the questions were about that have failed since the last answer: two of them at most.
    var failing: Set<Place> = []
    /// When the first of those questions began.
    var failingSince = Instant(nanoseconds: 0)
    /// How often it was found to fail since it is known to.
    var trials = 0
    /// When it was found so last.
    var tried = Instant(nanoseconds: 0)
    /// Nobody who has nothing kept asks before this moment, while the store is known to fail.
    var refuses = Instant(nanoseconds: 0)

    /// Whether it fails with all that is asked about the subject.
    func isKnownToFail(at now: Instant) -> Bool {
      failing.count > 1 && now.since(failingSince) >= .seconds(1)
    }

    /// Why one who has nothing kept need not ask; nil when the store may answer.
    func refusal(at now: Instant) -> StoreError? {
      isKnownToFail(at: now) && (trial != nil || now < refuses) ? reason : nil
    }

    mutating func noteAnswer() {
      lastAnswer = .now
      failures = 0
      reason = nil
      failing = []
      trials = 0
    }

    /// Notes a failure that one with nothing kept has met.
    mutating func note(_ fault: StoreError, about thing: Place, begun: Instant, _ pauses: Backoff) {
      failingSince = failing.isEmpty ? begun : min(failingSince, begun)
      if failing.count < 2 { failing.insert(thing) }
      reason = fault
      let now = Instant.now
      // Many that failed at one time are one failure.
      guard isKnownToFail(at: now), begun > tried else { return }
      trials += 1
      tried = now
      let cost = Span(nanoseconds: now.since(begun).nanoseconds / 2)
      refuses = now + min(max(pauses.pause(afterFailures: trials), cost), Patience.longestRefusal)
    }
  }

  private struct State {
    var lastID = 0
    /// When the questions began that have been silent for too long.
    var silent: [Int: (subject: Subject, since: Instant)] = [:]
    var records = Dictionary(uniqueKeysWithValues: Subject.allCases.map { ($0, Record()) })

    /// Whether a question has been silent since the last answer of all, or about the subject.
    func isSilent(_ subject: Subject) -> Bool {
      let last = records.values.map(\.lastAnswer).max() ?? Instant(nanoseconds: 0)
      let own = records[subject]?.lastAnswer ?? last
      return silent.values.contains { $0.since > ($0.subject == subject ? own : last) }
    }
  }

  /// How a question is put.
  private enum Admission {
    /// It is of no use to ask now.
    case none
    /// The caller waits for it.
    case waits(Int)
    /// The caller does not wait.
    case behind(Int)
  }

  private let limit: Span
  private let pauses: Backoff
  private let pool = WorkerPool(name: "patience", limit: 64)
  private let state = Locked(State())
  /// For how long after its rest a failure is still thought of as the store's state.
  private static let memory = Span.seconds(10)
  private let shortPauses: Backoff
  private let isReached: @Sendable () -> Bool
  /// The longest time for which nobody with nothing kept asks.
  private static let longestRefusal = Span.seconds(15)

  /// - Parameters:
  ///   - limit: how long a caller waits who could be answered from what is kept.
  ///   - pauses: for how long nobody waits after failures in a row.
  ///   - shortPauses: the same for callers with nothing kept; at least as long as half of what the
  ///     failed question took.
  ///   - isReached: whether requests are sent at all; while they are not, asking costs nothing, and
  ///     the answer says why.
  init(
    limit: Span, pauses: Backoff = Backoff(first: .seconds(2), longest: .seconds(30)),
    shortPauses: Backoff = Backoff(first: .milliseconds(500), longest: .seconds(5)),
    isReached: @escaping @Sendable () -> Bool = { true }
  ) {
    self.limit = limit
    self.isReached = isReached
    self.pauses = pauses
    self.shortPauses = shortPauses
  }

  /// Puts a question that something kept could answer too.
  ///
  /// - Parameters:
  ///   - call: who asks; its cancellation ends the waiting, not the question.
  ///   - question: waits for the store, on a thread of the pool.
  ///   - failure: why an answer is not the store's own after all.
  ///   - late: takes an answer that nobody waits for any more.
  /// - Returns: nil when what is kept must do.
  /// - Throws: `StoreError`, what the question threw; `cancelled`.
  func ask<Answer: Sendable>(
    _ subject: Subject, _ call: Call,
    _ question: @escaping @Sendable (Call) throws(StoreError) -> Answer,
    failure: @escaping @Sendable (Answer) -> StoreError? = { _ in nil },
    late: @escaping @Sendable (Answer) -> Void = { _ in }
  ) throws(StoreError) -> Answer? {
    let admission = begin(subject)
    let (id, waits): (Int, Bool)
    switch admission {
    case .none: return nil
    case .waits(let number): (id, waits) = (number, true)
    case .behind(let number): (id, waits) = (number, false)
    }
    let begun = Instant.now
    let timeout = call.timeout
    let exchange = Exchange<Answer>()
    let isRunning = pool.run { [self] in
      let result: Result<Answer, StoreError>
      let fault: StoreError?
      do throws(StoreError) {
        let answer = try question(Call(timeout: timeout))
        fault = failure(answer)
        result = .success(answer)
      } catch {
        fault = error
        result = .failure(error)
      }
      end(id, subject, begun, fault)
      let isLate = exchange.finish(result)
      if isLate, case .success(let answer) = result { late(answer) }
    }
    guard isRunning else {
      end(id, subject, begun, StoreError(.cancelled, "the mount is ending"))
      return nil
    }
    if waits, let result = exchange.wait(until: begun + limit, call.cancellation) {
      return try result.get()
    }
    // Noted before it is left: whoever ends it afterwards takes the note back.
    if waits { state.withLock { $0.silent[id] = (subject, begun) } }
    guard let result = exchange.leave() else {
      if call.cancellation.isCancelled {
        throw StoreError(.cancelled, "interrupted while the store was asked")
      }
      return nil
    }
    state.withLock { _ = $0.silent.removeValue(forKey: id) }
    return try result.get()
  }

  /// Puts a question that only the store can answer, on the caller's own thread, and learns from it.
  ///
  /// - Parameter thing: what the question is about.
  /// - Throws: `StoreError`, what the question threw; at once, without asking, why others have
  ///   failed just before.
  func insist<Answer>(
    _ subject: Subject, about thing: Place, _ call: Call,
    _ question: (Call) throws(StoreError) -> Answer
  ) throws(StoreError) -> Answer {
    let begun = Instant.now
    let id = try beginInsisting(subject, at: begun)
    do throws(StoreError) {
      let answer = try question(call)
      end(id, subject, begun, nil)
      return answer
    } catch {
      end(id, subject, begun, error, about: thing)
      throw Self.toldLate(error, call)
    }
  }

  /// Who stood in line for most of the time, beside the one that found the network gone, has had no
  /// answer in time: for that caller it was not known to be gone.
  private static func toldLate(_ error: StoreError, _ call: Call) -> StoreError {
    let most = Span(nanoseconds: call.timeout.nanoseconds / 5 * 2)
    guard error.kind == .offline, Instant.now.since(call.waitingSince) >= most else { return error }
    return StoreError(.timeout, error.message)
  }

  /// Whether a question about the subject is likely to be answered.
  func isAnswered(_ subject: Subject) -> Bool {
    state.withLock { $0.records[subject]?.failures == 0 && !$0.isSilent(subject) }
  }

  /// What the store does not answer, and how; nil while it answers.
  var reason: (subject: Subject, error: StoreError)? {
    let records = state.withLock { $0.records }
    for subject in Subject.allCases {
      if let error = records[subject]?.reason { return (subject, error) }
    }
    return nil
  }

  /// Thinks well of the store again: the network is back, or the person wants to see what is new.
  func renew() {
    state.withLock { state in
      state.silent = [:]
      for subject in Subject.allCases {
        state.records[subject]?.failures = 0
        state.records[subject]?.rests = Instant(nanoseconds: 0)
        state.records[subject]?.trial = nil
        state.records[subject]?.reason = nil
        state.records[subject]?.failing = []
        state.records[subject]?.trials = 0
      }
    }
  }

  /// Takes no more questions; those that are on their way end with the store's calls.
  func close() {
    pool.close(until: .now)
  }

  private func begin(_ subject: Subject) -> Admission {
    state.withLock { state in
      if state.isSilent(subject) { return .none }
      state.lastID += 1
      let id = state.lastID
      guard let record = state.records[subject], record.failures > 0 else { return .waits(id) }
      let now = Instant.now
      guard record.trial == nil, now > record.rests else { return .none }
      state.records[subject]?.trial = id
      return now < record.rests + Self.memory ? .behind(id) : .waits(id)
    }
  }

  /// - Returns: the number of the question; it is the trial while the store is known to fail.
  private func beginInsisting(_ subject: Subject, at now: Instant) throws(StoreError) -> Int {
    let isReached = isReached()
    return try state.withLock { (state) throws(StoreError) -> Int in
      if isReached, let refusal = state.records[subject]?.refusal(at: now) { throw refusal }
      state.lastID += 1
      if let record = state.records[subject], record.isKnownToFail(at: now), record.trial == nil {
        state.records[subject]?.trial = state.lastID
      }
      return state.lastID
    }
  }

  /// Notes how a question ended that began at a moment.
  private func end(
    _ id: Int, _ subject: Subject, _ begun: Instant, _ fault: StoreError?, about thing: Place? = nil
  ) {
    state.withLock { state in
      state.silent[id] = nil
      guard var record = state.records[subject] else { return }
      defer { state.records[subject] = record }
      if record.trial == id { record.trial = nil }
      switch fault?.kind {
      case nil, .notFound, .refused, .conflict, .exists, .tooLarge, .typeRefused, .keyRefused,
        .unsupported, .sessionExpired:
        record.noteAnswer()
      case .throttled, .server, .damaged, .connectivity, .timeout:
        if let fault, let thing {
          record.note(fault, about: thing, begun: begun, shortPauses)
        }
        // Many that failed at one time are one failure.
        guard begun > record.failed || record.failures == 0 else { return }
        record.failures += 1
        record.failed = .now
        record.rests = .now + pauses.pause(afterFailures: record.failures)
        record.reason = fault
        // The store has said something.
        if fault?.kind.isConnectivity == false { record.lastAnswer = .now }
      case .cancelled, .disabled, .offline, .noRoom: break
      }
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
    state.wait(until: deadline, cancellation) { $0.result }
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
