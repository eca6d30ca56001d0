package import Platform

/// A store behind the network's breaker, with patience for a store that is busy.
///
/// Offline and disabled calls fail at once and send nothing. What a store asks to try later, a
/// failure of its own and damaged bytes are tried again a few times, as long as the call's time
/// allows: never once a byte has been handed on. While it fails that way with everything of one kind
/// (objects, or questions), one thing after another, nothing of that kind is tried again: one answer
/// ends it.
package final class ConnectedStore: BucketStore {
  private let store: any BucketStore
  private let network: Network
  private let retry: RetryPolicy
  private let questions = Fortune()
  private let objects = Fortune()

  package init(
    _ store: any BucketStore, network: Network, retry: RetryPolicy = RetryPolicy()
  ) {
    self.store = store
    self.network = network
    self.retry = retry
    network.noteSession(store.session)
  }

  package var capabilities: StoreCapabilities { store.capabilities }

  package var session: SessionState { store.session }

  package var isReached: Bool {
    let state = network.current
    return state == .online || state == .restoring
  }

  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    try run(call, questions, about: ObjectName(bucket: "", key: "")) {
      (call, _) throws(StoreError) in
      try store.buckets(call)
    }
  }

  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    try run(call, questions, about: ObjectName(bucket: bucket, key: "")) {
      (call, _) throws(StoreError) in
      try store.bucketExists(bucket, call)
    }
  }

  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    try run(
      call, questions, about: ObjectName(bucket: request.bucket, key: request.prefix)
    ) { (call, _) throws(StoreError) in
      try store.list(request, call)
    }
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    try run(call, questions, about: object) { (call, _) throws(StoreError) in
      try store.info(object, call)
    }
  }

  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> GetOutcome
  {
    let begun = Locked(false)
    return try run(
      call, objects, about: request.object, mayRepeat: { !begun.withLock { $0 } }
    ) {
      (call, passage) throws(StoreError) in
      try store.get(request, into: WatchedSink(sink, passage, begun), call)
    }
  }

  /// Runs one call, again where that may help.
  ///
  /// - Parameters:
  ///   - fortune: how calls of this kind have been faring; nil where that decides nothing.
  ///   - thing: what the call is about, where `fortune` is given.
  ///   - mayRepeat: asked before each further try.
  ///   - helps: for which failures there is one.
  func run<Result>(
    _ call: Call, _ fortune: Fortune? = nil, about thing: ObjectName? = nil,
    mayRepeat: () -> Bool = { true },
    helps: (StoreError.Kind) -> Bool = RetryPolicy.helps,
    _ body: (Call, Passage) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let begun = Instant.now
    let end = call.deadline
    let tries = fortune?.isBad ?? false ? 1 : retry.tries
    // Only the first try has waited before.
    var inner = call
    var failures = 0
    while true {
      let passage = try network.admit(inner)
      let failure: StoreError
      do throws(StoreError) {
        inner.cancellation = passage.cancellation
        let result = try body(inner, passage)
        _ = network.finish(passage, nil)
        network.noteSession(store.session)
        fortune?.succeeded()
        call.getsOn()
        return result
      } catch {
        failure = network.finish(passage, error) ?? error
        network.noteSession(store.session)
      }
      failures += 1
      guard failures < tries, helps(failure.kind), mayRepeat() else {
        // Once bytes have come, the store does.
        if let thing, mayRepeat() { fortune?.ended(failure.kind, about: thing, begun: begun) }
        if Evidence(failure) == .answer { call.getsOn() }
        throw failure
      }
      let next = Instant.now + retry.pauses.pause(afterFailures: failures)
      guard next < end else { throw failure }
      if call.cancellation.sleep(until: next) {
        throw StoreError(.cancelled, "stopped while waiting for another try")
      }
      inner = Call(
        timeout: max(end.since(.now), .milliseconds(100)), cancellation: call.cancellation)
    }
  }
}

/// How often, and at which pace, a call is tried again.
package struct RetryPolicy: Sendable {
  /// Tries in all, the first one included.
  package var tries: Int
  /// How long to wait before the next try.
  package var pauses: Backoff

  /// Three tries in about a second, unless told otherwise.
  package init(
    tries: Int = 3, pauses: Backoff = Backoff(first: .milliseconds(300), longest: .seconds(3))
  ) {
    self.tries = tries
    self.pauses = pauses
  }

  /// Whether the store may answer otherwise in a moment.
  ///
  /// Not where the network failed: the breaker is open then, and a probe will close it.
  static func helps(_ kind: StoreError.Kind) -> Bool {
    kind == .throttled || kind == .server || kind == .damaged
  }
}

/// Passes an object's bytes on, and tells the network that they come.
private final class WatchedSink: GetSink {
  private let sink: any GetSink
  private let passage: Passage
  private let begun: Locked<Bool>

  init(_ sink: any GetSink, _ passage: Passage, _ begun: Locked<Bool>) {
    self.sink = sink
    self.passage = passage
    self.begun = begun
  }

  func begin(_ head: ObjectHead) -> Bool {
    passage.noteByte()
    begun.withLock { $0 = true }
    return sink.begin(head)
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    passage.noteByte()
    return sink.receive(bytes)
  }

  func goesOn() { sink.goesOn() }
}
