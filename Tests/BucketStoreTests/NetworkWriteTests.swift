import BucketStore
import Platform
import TestSupport
import Testing

@Suite struct NetworkWriteTests {
  private let object = ObjectName(bucket: "x", key: "object")

  private func store(_ server: FlakyServer) throws -> (ConnectedWritableStore, Network) {
    let network = Network(.slow)
    let store = ConnectedWritableStore(
      PlainWritableStore(server.url, try HTTPClient()), network: network,
      retry: RetryPolicy(
        tries: 3, pauses: Backoff(first: .milliseconds(10), longest: .milliseconds(20))))
    return (store, network)
  }

  private func put(_ store: ConnectedWritableStore, timeout: Span = .seconds(10)) -> StoreError? {
    let request = PutRequest(
      object: object, size: 6_000_000, contentType: "text/plain", userMetadata: [:],
      condition: .none)
    do throws(StoreError) {
      try store.put(request, from: Zeroes(), progress: { _ in }, Call(timeout: timeout))
      return nil
    } catch {
      return error
    }
  }

  private func delete(_ store: ConnectedWritableStore) -> StoreError? {
    do throws(StoreError) {
      try store.delete(object, Call())
      return nil
    } catch {
      return error
    }
  }

  @Test func anUploadIsTriedOnceSinceItMayHaveBeenStored() throws {
    for status in ["503 Busy", "429 Later"] {
      let server = try FlakyServer { connection, _ in connection.answer(status) }
      let (store, network) = try store(server)
      #expect(put(store) != nil)
      #expect(server.requests.count == 1)
      #expect(network.current == .online)
    }
  }

  @Test func aWriteIsTriedAgainOnlyWhereItWasTurnedAwayUnseen() throws {
    for (status, tries) in [("429 Later", 3), ("503 Busy", 1), ("200 OK", 1)] {
      let server = try FlakyServer { connection, _ in connection.answer(status) }
      let (store, _) = try store(server)
      #expect((delete(store) == nil) == (status == "200 OK"))
      #expect(server.requests.count == tries)
    }
  }

  @Test func aLostUploadOpensTheBreakerForWritesToo() throws {
    let server = try FlakyServer()
    let (store, network) = try store(server)
    #expect(put(store) == nil)
    server.isDown = true
    #expect(put(store)?.kind == .connectivity)
    #expect(network.current == .offline)
    let count = server.requests.count
    #expect(delete(store)?.kind == .offline)
    #expect(put(store)?.kind == .offline)
    #expect(server.requests.count == count)
    network.disable()
    #expect(put(store)?.kind == .disabled)
  }
}

private final class Zeroes: PutSource {
  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    buffer.initializeMemory(as: UInt8.self, repeating: 0)
    return buffer.count
  }
}

/// `PlainStore` with the writes that the tests above make; it has no resumable uploads.
private final class PlainWritableStore: WritableStore {
  let writing = WritingCapabilities(atomicCreate: false, atomicReplace: false, resumable: nil)
  let capabilities = StoreCapabilities(flatListing: true, pageSize: 1000)
  let session = SessionState.keyOnly
  private let plain: PlainStore
  private let transport: any HTTPTransport

  init(_ url: String, _ transport: any HTTPTransport) {
    plain = PlainStore(url, transport)
    self.transport = transport
  }

  func allows(_ key: ByteString) -> Bool { true }

  func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] { try plain.buckets(call) }

  func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    try plain.bucketExists(bucket, call)
  }

  func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    try plain.list(request, call)
  }

  func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    try plain.info(object, call)
  }

  func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
    -> GetOutcome
  {
    try plain.get(request, into: sink, call)
  }

  func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    var upload = HTTPRequest("PUT", plain.url + "/object")
    upload.payload = .source(source, 0..<request.size, progress: progress)
    try send(upload, call)
  }

  func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    throw StoreError(.unsupported, "no resumable uploads")
  }

  func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    throw StoreError(.unsupported, "no resumable uploads")
  }

  func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {}

  func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    try send(HTTPRequest("DELETE", plain.url + "/object"), call)
  }

  func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call) throws(StoreError)
    -> Set<ByteString>
  {
    try send(HTTPRequest("DELETE", plain.url + "/objects"), call)
    return Set(keys)
  }

  func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    try send(HTTPRequest("POST", plain.url + "/move"), call)
  }

  func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
  {
    try send(HTTPRequest("POST", plain.url + "/copy"), call)
  }

  private func send(_ request: HTTPRequest, _ call: Call) throws(StoreError) {
    let response = try transport.perform(request, into: nil, call)
    switch response.status {
    case 200: return
    case 429: throw StoreError(.throttled, "later")
    default: throw StoreError(.server, "status \(response.status)")
    }
  }
}
