package import Platform

/// A store that is written to, behind the network's breaker.
///
/// Reads are those of `ConnectedStore`. A write is tried again only where the store has turned it
/// away unseen (`throttled`): after any other failure it may have been done, and only the caller
/// knows how to find out. Uploads are tried once: their patience is the queue's.
package final class ConnectedWritableStore: WritableStore {
  private let store: any WritableStore
  private let connected: ConnectedStore

  /// Puts the network's state before every call of a store.
  package init(
    _ store: any WritableStore, network: Network, retry: RetryPolicy = RetryPolicy()
  ) {
    self.store = store
    connected = ConnectedStore(store, network: network, retry: retry)
  }

  package var capabilities: StoreCapabilities { connected.capabilities }

  package var session: SessionState { connected.session }

  package var isReached: Bool { connected.isReached }

  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    try connected.buckets(call)
  }

  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    try connected.bucketExists(bucket, call)
  }

  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    try connected.list(request, call)
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    try connected.info(object, call)
  }

  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> GetOutcome
  {
    try connected.get(request, into: sink, call)
  }

  package var writing: WritingCapabilities { store.writing }

  package func allows(_ key: ByteString) -> Bool { store.allows(key) }

  package func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try connected.run(call, mayRepeat: { false }) { (call, passage) throws(StoreError) in
      try store.put(request, from: source, progress: Self.watched(progress, passage), call)
    }
  }

  package func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    try write(call) { (call) throws(StoreError) in try store.beginUpload(request, call) }
  }

  package func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try connected.run(call, mayRepeat: { false }) { (call, passage) throws(StoreError) in
      try store.continueUpload(
        token, request, from: source, progress: Self.watched(progress, passage), call)
    }
  }

  package func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    try write(call) { (call) throws(StoreError) in
      try store.abandonUpload(token, request, call)
    }
  }

  package func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    try write(call) { (call) throws(StoreError) in try store.delete(object, call) }
  }

  package func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    try write(call) { (call) throws(StoreError) in try store.delete(keys, in: bucket, call) }
  }

  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    try write(call) { (call) throws(StoreError) in try store.move(object, to: key, call) }
  }

  package func move(
    _ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call
  ) throws(StoreError) {
    try write(call) { (call) throws(StoreError) in
      try store.move(object, to: target, overwriting: overwriting, call)
    }
  }

  package func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
  {
    try write(call) { (call) throws(StoreError) in
      try store.copy(object, to: target, overwriting: overwriting, call)
    }
  }

  private func write<Result>(
    _ call: Call, _ body: (Call) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try connected.run(call, helps: { $0 == .throttled }) { (call, _) throws(StoreError) in
      try body(call)
    }
  }

  /// Bytes that go out show that the network lives, as bytes that come in do.
  private static func watched(
    _ progress: @escaping @Sendable (Int64) -> Void, _ passage: Passage
  ) -> @Sendable (Int64) -> Void {
    { sent in
      passage.noteByte()
      progress(sent)
    }
  }
}
