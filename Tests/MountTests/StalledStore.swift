import BucketStore
import Glibc
import Platform

/// A store whose objects with keys below `slow/` are not answered until it is released.
///
/// A call on them ends as the contract says: answered, cancelled, or timed out.
final class StalledStore: BucketStore {
  private let inner: any BucketStore
  private let state = Locked((released: false, waiting: 0, time: Span?.none))

  /// Where it stalls.
  enum Mode: Sendable {
    case beforeTheAnswer
    /// What it sends first is the head, so an open succeeds and its reads wait.
    case afterTheHead
    /// Does not list that folder either, and does not let itself be cancelled.
    case stubbornly
  }

  private let mode: Mode

  init(_ inner: any BucketStore, _ mode: Mode = .beforeTheAnswer) {
    self.mode = mode
    self.inner = inner
  }

  /// How many calls wait at this moment.
  var waiting: Int { state.withLock { $0.waiting } }

  /// Answers each call from now on after a random time below this one.
  func answer(within time: Span) { state.withLock { $0.time = time } }

  func release() { state.withLock { $0.released = true } }

  /// Waits until so many calls wait.
  func awaitWaiting(_ count: Int) -> Bool {
    state.wait(until: .now + .seconds(30)) { $0.waiting >= count ? true : nil } ?? false
  }

  func awaitNoneWaiting() -> Bool {
    state.wait(until: .now + .seconds(30)) { $0.waiting == 0 ? true : nil } ?? false
  }

  var capabilities: StoreCapabilities { inner.capabilities }
  var session: SessionState { inner.session }

  func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] { try inner.buckets(call) }

  func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    try inner.bucketExists(bucket, call)
  }

  func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    if mode == .stubbornly {
      try stall(ObjectName(bucket: request.bucket, key: request.prefix), call)
    }
    return try inner.list(request, call)
  }

  func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    try stall(object, call)
    return try inner.info(object, call)
  }

  func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
    -> GetOutcome
  {
    guard mode == .afterTheHead else {
      try stall(request.object, call)
      return try inner.get(request, into: sink, call)
    }
    let stalling = StallingSink(sink) { [self] in
      do throws(StoreError) {
        try stall(request.object, call)
        return true
      } catch {
        return false
      }
    }
    return try inner.get(request, into: stalling, call)
  }

  private func stall(_ object: ObjectName, _ call: Call) throws(StoreError) {
    guard object.key.hasPrefix("slow/") else { return }
    state.withLock { $0.waiting += 1 }
    state.wakeAll()
    defer {
      state.withLock { $0.waiting -= 1 }
      state.wakeAll()
    }
    if let time = state.withLock({ $0.time }) {
      let delay = Span(nanoseconds: Int64.random(in: 0...time.nanoseconds))
      if call.cancellation.sleep(until: .now + delay) {
        throw StoreError(.cancelled, "cancelled")
      }
      return
    }
    let deadline = Instant.now + call.timeout
    while !state.withLock({ $0.released }) {
      if mode == .stubbornly {
        usleep(10_000)
        continue
      }
      if call.cancellation.sleep(until: .now + .milliseconds(10)) {
        throw StoreError(.cancelled, "cancelled")
      }
      if Instant.now > deadline { throw StoreError(.timeout, "no answer") }
    }
  }
}

/// Hands the head on at once, and the bytes when it may.
private final class StallingSink: GetSink {
  private let inner: any GetSink
  private let mayGoOn: @Sendable () -> Bool

  init(_ inner: any GetSink, _ mayGoOn: @escaping @Sendable () -> Bool) {
    self.inner = inner
    self.mayGoOn = mayGoOn
  }

  func begin(_ head: ObjectHead) -> Bool { inner.begin(head) }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool { mayGoOn() && inner.receive(bytes) }
}

extension StalledStore: CustomReflectable {
  var customMirror: Mirror { Mirror(self, children: ["waiting": waiting]) }
}
