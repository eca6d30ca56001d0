package import BucketStore
package import Platform

/// A store behind a door: what one device has of a store that others reach all the while.
package final class DoorStore: WritableStore {
  private let inner: any WritableStore
  private let isShut = Locked(false)

  package init(_ inner: any WritableStore) {
    self.inner = inner
  }

  /// While it is shut every call fails at once, as on a device without a network.
  package var isOpen: Bool {
    get { !isShut.withLock { $0 } }
    set { isShut.withLock { $0 = !newValue } }
  }

  private func pass() throws(StoreError) {
    if !isOpen { throw StoreError(.offline, "the door is shut") }
  }

  package var capabilities: StoreCapabilities { inner.capabilities }
  package var session: SessionState { inner.session }
  package var writing: WritingCapabilities { inner.writing }
  package func allows(_ key: ByteString) -> Bool { inner.allows(key) }

  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    try pass()
    return try inner.buckets(call)
  }

  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    try pass()
    return try inner.bucketExists(bucket, call)
  }

  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    try pass()
    return try inner.list(request, call)
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    try pass()
    return try inner.info(object, call)
  }

  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> GetOutcome
  {
    try pass()
    return try inner.get(request, into: sink, call)
  }

  package func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try pass()
    try inner.put(request, from: source, progress: progress, call)
  }

  package func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    try pass()
    return try inner.beginUpload(request, call)
  }

  package func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try pass()
    try inner.continueUpload(token, request, from: source, progress: progress, call)
  }

  package func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    try pass()
    try inner.abandonUpload(token, request, call)
  }

  package func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    try pass()
    try inner.delete(object, call)
  }

  package func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    try pass()
    return try inner.delete(keys, in: bucket, call)
  }

  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    try pass()
    try inner.move(object, to: key, call)
  }

  package func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
  {
    try pass()
    try inner.copy(object, to: target, overwriting: overwriting, call)
  }
}
