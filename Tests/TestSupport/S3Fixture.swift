package import BucketStore
package import Platform

/// Buckets of a server of S3 that one test has for itself.
package final class S3Fixture: StoreFixture {
  package let server: S3Server
  package let address: S3Address
  package let client: HTTPClient
  /// What the test is given: its buckets have other names at the server.
  package let store: any BucketStore
  package let writable: any WritableStore
  package let allowsAnyKey = true
  /// What the names of its buckets begin with at the server.
  package let prefix: ByteString
  private let pageSize: Int
  private static let lastNumber = Locked(0)

  package init(_ kind: S3Server.Kind, pageSize: Int = 1000) throws {
    server = try S3Server.running(kind)
    address = try S3Address(endpoint: server.endpoint)
    client = try HTTPClient()
    let number = Self.lastNumber.withLock { last in
      last += 1
      return last
    }
    prefix = ByteString("t\(number)-")
    self.pageSize = pageSize
    let user = server.user
    let inner = S3Store(
      address: address, credentials: { user }, transport: client, pageSize: pageSize)
    let renamed = RenamedBuckets(inner, prefix: prefix)
    store = renamed
    writable = renamed
  }

  deinit {
    client.shutdown()
  }

  /// The bucket's name at the server.
  package func bucket(_ name: String) -> ByteString { prefix + ByteString(name) }

  package func object(_ bucket: String, _ key: String) -> ObjectName {
    ObjectName(bucket: self.bucket(bucket), key: ByteString(key))
  }

  /// A store of the server, whose buckets have the server's names.
  package func makeStore(
    _ transport: (any HTTPTransport)? = nil, partSize: Int64 = 8 << 20,
    address: S3Address? = nil, credentials: S3Credentials? = nil,
    headers: [(name: String, value: String)] = []
  ) -> S3Store {
    let used = credentials ?? server.user
    return S3Store(
      address: address ?? self.address, credentials: { used }, transport: transport ?? client,
      headers: headers, pageSize: pageSize, partSize: partSize)
  }

  package func createBucket(_ name: String) throws {
    _ = try send("PUT", address.target(bucket: bucket(name)), server.owner)
  }

  package func put(_ bucket: String, _ key: String, _ bytes: [UInt8]) throws {
    _ = try send("PUT", target(bucket, key), server.user, bytes)
  }

  package func remove(_ bucket: String, _ key: String) throws {
    _ = try send("DELETE", target(bucket, key), server.user)
  }

  private func target(_ bucket: String, _ key: String) -> S3Address.Target {
    address.target(bucket: self.bucket(bucket), key: ByteString(key))
  }

  /// Sends a request that is signed here, not by a store.
  @discardableResult
  package func send(
    _ method: String, _ target: S3Address.Target, _ credentials: S3Credentials,
    _ bytes: [UInt8]? = nil, headers: [(name: String, value: String)] = []
  ) throws -> HTTPResponse {
    let now = Timestamp.now
    let payload = Digest.hex(.sha256, of: bytes ?? [])
    var request = HTTPRequest(method, target.url, headers: headers, body: bytes)
    request.headers += [
      ("x-amz-content-sha256", payload), ("x-amz-date", S3Signature.time(now)),
    ]
    let authorization = S3Signature(credentials, region: "us-east-1").authorization(
      method, path: target.path, query: "", headers: [("host", target.host)] + request.headers,
      payload: payload, at: now)
    request.headers.append(("Authorization", authorization))
    let response = try client.perform(request, into: nil, Call())
    guard (200..<300).contains(response.status) else {
      throw S3Server.Missing(
        description: "\(method) \(target.url): \(response.status) "
          + String(decoding: response.body, as: UTF8.self))
    }
    return response
  }
}

/// A store whose buckets have longer names than it is asked for: many tests share one server.
package final class RenamedBuckets: WritableStore {
  private let inner: any WritableStore
  private let prefix: ByteString

  package init(_ inner: any WritableStore, prefix: ByteString) {
    self.inner = inner
    self.prefix = prefix
  }

  private func named(_ object: ObjectName) -> ObjectName {
    ObjectName(bucket: prefix + object.bucket, key: object.key)
  }

  private func named(_ request: PutRequest) -> PutRequest {
    var request = request
    request.object = named(request.object)
    return request
  }

  package var capabilities: StoreCapabilities { inner.capabilities }
  package var session: SessionState { inner.session }
  package var writing: WritingCapabilities { inner.writing }

  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    try inner.buckets(call).filter { $0.name.hasPrefix(prefix) }.map {
      BucketInfo(name: $0.name.dropFirst(prefix.count), created: $0.created)
    }
  }

  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    try inner.bucketExists(prefix + bucket, call)
  }

  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    var request = request
    request.bucket = prefix + request.bucket
    return try inner.list(request, call)
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    try inner.info(named(object), call)
  }

  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> GetOutcome
  {
    var request = request
    request.object = named(request.object)
    return try inner.get(request, into: sink, call)
  }

  package func allows(_ key: ByteString) -> Bool { inner.allows(key) }

  package func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try inner.put(named(request), from: source, progress: progress, call)
  }

  package func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    try inner.beginUpload(named(request), call)
  }

  package func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try inner.continueUpload(token, named(request), from: source, progress: progress, call)
  }

  package func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    try inner.abandonUpload(token, named(request), call)
  }

  package func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    try inner.delete(named(object), call)
  }

  package func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    try inner.delete(keys, in: prefix + bucket, call)
  }

  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    try inner.move(named(object), to: key, call)
  }

  package func move(
    _ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call
  ) throws(StoreError) {
    try inner.move(named(object), to: named(target), overwriting: overwriting, call)
  }

  package func copy(
    _ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call
  ) throws(StoreError) {
    try inner.copy(named(object), to: named(target), overwriting: overwriting, call)
  }
}
