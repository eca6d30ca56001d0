package import BucketStore
package import Platform

/// A store in memory that counts what it is asked, and fails, lies and waits as it is told.
package final class MemoryStore: BucketStore {
  /// A call as it arrived.
  package struct Request: Sendable, Equatable {
    package enum Route: Sendable {
      case buckets, bucketExists, list, info, get
      case put, beginUpload, continueUpload, abandonUpload, delete, move, copy
    }

    package let route: Route
    package let bucket: ByteString
    /// The key, or the prefix of a listing.
    package let key: ByteString
    package let delimited: Bool
    package let range: Range<Int64>?
  }

  /// What goes wrong with a call, each once.
  package enum Fault: Sendable {
    case fail(StoreError)
    /// `get` hands on so many bytes, then fails with `connectivity`; a `put` takes so many and
    /// stores nothing, a `continueUpload` keeps them. Of a deletion of many so many may be deleted.
    case cut(after: Int)
    /// `get` hands on, and `put` stores, bytes of which the first is another.
    case flip
    /// A write takes effect, and its answer is lost.
    case loseAnswer(StoreError)
    /// A write takes effect, and answers once the gate opens or the call is cancelled.
    case answerAfter(Gate)
    /// A `put` has all its bytes, and takes effect once the gate opens, cancelled or not.
    case commitAfter(Gate)
    /// A `put` looks at all its bytes, and sends them once the gate opens, unless it is cancelled.
    case lookFirst(Gate)
    /// The call waits until the gate opens, or is cancelled.
    case wait(Gate)
  }

  struct Object {
    var bytes: [UInt8]
    var info: ObjectInfo
  }

  struct State {
    var capabilities = StoreCapabilities(flatListing: true, pageSize: 1000)
    var session = SessionState.keyOnly
    var buckets: [ByteString: [ByteString: Object]] = [:]
    var order: [ByteString: [ByteString]] = [:]
    var unlisted: Set<ByteString> = []
    var requests: [Request] = []
    var faults: [(Request.Route?, Fault)] = []
    var outage: StoreError?
    var outages: [Request.Route: StoreError] = [:]
    var writes: Int64 = 0
    var writing = WritingCapabilities(atomicCreate: true, atomicReplace: true, resumable: nil)
    var uploads: [String: (request: PutRequest, bytes: [UInt8])] = [:]
    /// Writes that are under way, by name.
    var underway: [ObjectName: Int] = [:]
    var mostUnderway = 0
    var overlaps = 0
    /// Those that take effect after they were cancelled.
    var late: [Thread] = []
  }

  let state = Locked(State())

  package init() {}

  package var capabilities: StoreCapabilities {
    get { state.withLock { $0.capabilities } }
    set { state.withLock { $0.capabilities = newValue } }
  }

  package var session: SessionState {
    get { state.withLock { $0.session } }
    set { state.withLock { $0.session = newValue } }
  }

  /// What every call fails with; nil while the store is well.
  package var outage: StoreError? {
    get { state.withLock { $0.outage } }
    set { state.withLock { $0.outage = newValue } }
  }

  /// Lets every call of a kind fail from now on; nil ends that.
  package func fail(_ route: Request.Route, with error: StoreError?) {
    state.withLock { $0.outages[route] = error }
  }

  /// What was asked since the start, or since `forgetRequests`.
  package var requests: [Request] { state.withLock { $0.requests } }

  package func forgetRequests() { state.withLock { $0.requests = [] } }

  /// Lets the next call, or the next of a kind, go wrong; faults queue up.
  package func inject(_ fault: Fault, on route: Request.Route? = nil) {
    state.withLock { $0.faults.append((route, fault)) }
  }

  /// Makes a bucket.
  ///
  /// - Parameter listed: whether `buckets` names it.
  package func createBucket(_ name: ByteString, listed: Bool = true) {
    state.withLock { state in
      state.buckets[name] = state.buckets[name] ?? [:]
      if listed { state.unlisted.remove(name) } else { state.unlisted.insert(name) }
    }
  }

  package func removeBucket(_ name: ByteString) {
    state.withLock { state in
      state.buckets[name] = nil
      state.order[name] = nil
    }
  }

  /// Writes an object with a new time and version; its tag is the MD5 of its bytes.
  @discardableResult
  package func put(
    _ bucket: ByteString, _ key: ByteString, _ bytes: [UInt8], contentType: String? = nil,
    userMetadata: [String: String]? = nil
  ) -> ObjectInfo {
    state.withLock { state in
      state.write(bucket, key, bytes, contentType: contentType, userMetadata: userMetadata)
    }
  }

  package func remove(_ bucket: ByteString, _ key: ByteString) {
    state.withLock { state in
      state.buckets[bucket]?[key] = nil
      state.order[bucket] = nil
    }
  }

  /// Changes what the store says of an object, such as a size that it does not know.
  package func describe(
    _ bucket: ByteString, _ key: ByteString, _ change: @Sendable (inout ObjectInfo) -> Void
  ) {
    state.withLock { state in
      guard var object = state.buckets[bucket]?[key] else { return }
      change(&object.info)
      state.buckets[bucket]?[key] = object
    }
  }

  // MARK: - BucketStore

  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    _ = try arrive(.buckets, "", "", call)
    return state.withLock { state in
      state.buckets.keys.filter { !state.unlisted.contains($0) }.sorted().map {
        BucketInfo(name: $0, created: Timestamp(seconds: 1_600_000_000))
      }
    }
  }

  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    _ = try arrive(.bucketExists, bucket, "", call)
    return state.withLock { $0.buckets[bucket] != nil }
  }

  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    _ = try arrive(.list, request.bucket, request.prefix, call, delimited: request.delimited)
    guard request.delimited || capabilities.flatListing else {
      throw StoreError(.unsupported, "no flat listing")
    }
    return state.withLock { state in
      let keys = Self.keys(of: request.bucket, &state)
      let after = request.cursor.flatMap { Percent.decode($0.text.utf8) } ?? ByteString()
      let skipped = after.hasSuffix("/") ? after.dropLast() + "0" : after
      var page = ListPage(objects: [], folders: [], next: nil)
      var last = ByteString()
      var index = Self.firstIndex(in: keys, from: max(skipped, request.prefix))
      while index < keys.count, keys[index].hasPrefix(request.prefix) {
        let key = keys[index]
        if key == after {
          index += 1
          continue
        }
        if page.objects.count + page.folders.count == state.capabilities.pageSize {
          page.next = ListCursor(Percent.encode(last))
          break
        }
        let rest = key.bytes.dropFirst(request.prefix.count)
        if request.delimited, let cut = rest.firstIndex(of: ByteString.slash) {
          last = ByteString(key.bytes[...cut])
          page.folders.append(last)
          index = Self.firstIndex(in: keys, from: last.dropLast() + "0")
        } else {
          last = key
          if var info = state.buckets[request.bucket]?[key]?.info {
            info.version = nil
            info.userMetadata = nil
            page.objects.append(info)
          }
          index += 1
        }
      }
      return page
    }
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    _ = try arrive(.info, object.bucket, object.key, call)
    guard let found = self.object(object) else { throw StoreError(.notFound, "no such object") }
    return found.info
  }

  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
    -> GetOutcome
  {
    let name = request.object
    let fault = try arrive(.get, name.bucket, name.key, call, range: request.range)
    guard let object = object(name) else { throw StoreError(.notFound, "no such object") }
    if let tag = request.unlessTag, tag == object.info.tag { return .notModified }
    let size = Int64(object.bytes.count)
    let range = request.range.map { $0.clamped(to: 0..<size) } ?? 0..<size
    let head = ObjectHead(
      size: size, range: range, tag: object.info.tag, modified: object.info.modified,
      contentType: object.info.contentType)
    guard sink.begin(head) else { throw StoreError(.cancelled, "declined") }
    var bytes = Array(object.bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    var isCut = false
    switch fault {
    case .flip: if !bytes.isEmpty { bytes[0] ^= 0xFF }
    case .cut(let count):
      isCut = true
      bytes = Array(bytes.prefix(count))
    case .fail, .wait, .loseAnswer, .answerAfter, .commitAfter, .lookFirst, nil: break
    }
    var start = 0
    while start < bytes.count {
      let end = min(start + 65_536, bytes.count)
      let taken = bytes[start..<end].withUnsafeBytes { sink.receive($0) }
      guard taken, !call.cancellation.isCancelled else {
        throw StoreError(.cancelled, "declined")
      }
      start = end
    }
    if isCut { throw StoreError(.connectivity, "connection cut") }
    return .complete(head)
  }

  // MARK: - Parts

  func object(_ name: ObjectName) -> Object? {
    state.withLock { $0.buckets[name.bucket]?[name.key] }
  }

  func arrive(
    _ route: Request.Route, _ bucket: ByteString, _ key: ByteString, _ call: Call,
    delimited: Bool = false, range: Range<Int64>? = nil
  ) throws(StoreError) -> Fault? {
    let (outage, fault) = state.withLock { state -> (StoreError?, Fault?) in
      state.requests.append(
        Request(route: route, bucket: bucket, key: key, delimited: delimited, range: range))
      let index = state.faults.firstIndex { $0.0 == nil || $0.0 == route }
      return (state.outage ?? state.outages[route], index.map { state.faults.remove(at: $0).1 })
    }
    if case .wait(let gate)? = fault, !gate.pass(call.cancellation) {
      throw StoreError(.cancelled, "cancelled")
    }
    if case .fail(let error)? = fault { throw error }
    if let outage { throw outage }
    if call.cancellation.isCancelled { throw StoreError(.cancelled, "cancelled") }
    return fault
  }

  private static func keys(of bucket: ByteString, _ state: inout State) -> [ByteString] {
    if let keys = state.order[bucket] { return keys }
    let keys = (state.buckets[bucket]?.keys).map { $0.sorted() } ?? []
    state.order[bucket] = keys
    return keys
  }

  private static func firstIndex(in keys: [ByteString], from key: ByteString) -> Int {
    var low = 0
    var high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// Holds calls back until it is opened.
package final class Gate: Sendable {
  private let state = Locked((open: false, waiting: 0))

  package init() {}

  /// How many calls have come to the gate.
  package var arrivals: Int { state.withLock { $0.waiting } }

  package func open() {
    state.withLock { $0.open = true }
    state.wakeAll()
  }

  /// Waits until so many calls have come to the gate.
  package func awaitArrivals(_ count: Int) {
    _ = state.wait(until: Instant.now + .seconds(30)) { $0.waiting >= count ? true : nil }
  }

  /// Waits until it is opened.
  package func pass() { _ = pass(Cancellation()) }

  /// - Returns: false when cancelled first.
  func pass(_ cancellation: Cancellation) -> Bool {
    state.withLock { $0.waiting += 1 }
    state.wakeAll()
    let handler = cancellation.onCancel { [state] in state.wakeAll() }
    defer { cancellation.remove(handler) }
    return state.wait(until: Instant.now + .seconds(60)) { state -> Bool? in
      if state.open { return true }
      return cancellation.isCancelled ? false : nil
    } ?? false
  }
}
