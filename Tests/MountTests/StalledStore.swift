import BucketStore
import Glibc
import Platform

/// A store whose objects with keys below `slow/` are not answered until it is released.
///
/// A call on them ends as the contract says: answered, cancelled, or timed out. A stubborn store
/// does not list that folder either, and does not let itself be cancelled.
final class StalledStore: BucketStore {
  private let inner: any BucketStore
  private let state = Locked((released: false, waiting: 0, time: Span?.none))

  private let isStubborn: Bool

  init(_ inner: any BucketStore, isStubborn: Bool = false) {
    self.isStubborn = isStubborn
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
    if isStubborn { try stall(ObjectName(bucket: request.bucket, key: request.prefix), call) }
    return try inner.list(request, call)
  }

  func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    try stall(object, call)
    return try inner.info(object, call)
  }

  func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
    -> GetOutcome
  {
    try stall(request.object, call)
    return try inner.get(request, into: sink, call)
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
      if isStubborn {
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

extension StalledStore: CustomReflectable {
  var customMirror: Mirror { Mirror(self, children: ["waiting": waiting]) }
}
