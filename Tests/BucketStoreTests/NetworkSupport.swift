import BucketStore
import Platform
import TestSupport

/// The smallest store over HTTP: statuses become kinds, and nothing is worked around.
final class PlainStore: BucketStore {
  let capabilities = StoreCapabilities(flatListing: true, pageSize: 1000)
  let url: String
  private let transport: any HTTPTransport
  private let sessionState: Locked<SessionState>

  var session: SessionState {
    get { sessionState.withLock { $0 } }
    set { sessionState.withLock { $0 = newValue } }
  }

  init(_ url: String, _ transport: any HTTPTransport) {
    self.url = url
    self.transport = transport
    sessionState = Locked(.keyOnly)
  }

  func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    _ = try ask("/exists", nil, call)
    return true
  }

  func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    _ = try ask("/buckets", nil, call)
    return []
  }

  func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    _ = try ask("/list", nil, call)
    return ListPage(objects: [], folders: [], next: nil)
  }

  func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    _ = try ask("/info", nil, call)
    return ObjectInfo(key: object.key, size: nil, tag: nil, modified: nil)
  }

  func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
    -> GetOutcome
  {
    let head = ObjectHead(size: nil, range: nil, tag: nil, modified: nil)
    _ = try ask("/\(request.object.key)", Bridge(sink, head), call)
    return .complete(head)
  }

  private func ask(_ path: String, _ sink: (any HTTPSink)?, _ call: Call) throws(StoreError)
    -> HTTPResponse
  {
    let response = try transport.perform(HTTPRequest("GET", url + path), into: sink, call)
    switch response.status {
    case 200: return response
    case 404: throw StoreError(.notFound, "not found")
    case 429: throw StoreError(.throttled, "later")
    default: throw StoreError(.server, "status \(response.status)")
    }
  }

  private final class Bridge: HTTPSink {
    private let sink: any GetSink
    private let head: ObjectHead

    init(_ sink: any GetSink, _ head: ObjectHead) {
      self.sink = sink
      self.head = head
    }

    func begin(_ response: HTTPResponse) -> Bool { sink.begin(head) }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool { sink.receive(bytes) }
  }
}

/// A store over HTTP behind a network, with quick probes.
final class ConnectedFixture: Sendable {
  let client: HTTPClient
  let network: Network
  let plain: PlainStore
  let store: ConnectedStore
  private let log = Locked<[NetworkChange]>([])

  init(_ url: String, _ options: NetworkOptions = .quick) throws {
    client = try HTTPClient()
    network = Network(options)
    let plain = PlainStore(url, ConnectedTransport(client, network: network))
    self.plain = plain
    store = ConnectedStore(
      plain, network: network,
      retry: RetryPolicy(
        tries: 3, pauses: Backoff(first: .milliseconds(20), longest: .milliseconds(100))))
    let log = log
    network.onChange { change in
      log.withLock { $0.append(change) }
      log.wakeAll()
    }
    try network.start { (call) throws(StoreError) in _ = try plain.bucketExists("x", call) }
  }

  deinit {
    network.stop()
    client.shutdown()
  }

  var changes: [NetworkChange] { log.withLock { $0 } }

  /// Waits until the last change led to a state.
  func waitFor(_ state: NetworkState, within span: Span = .seconds(10)) -> Bool {
    log.wait(until: .now + span) { $0.last?.to == state ? true : nil } ?? false
  }

  /// Asks whether a bucket exists, and gives the failure and the time it took.
  func ask(_ call: Call = Call()) -> (error: StoreError?, taken: Span) {
    let start = Instant.now
    do throws(StoreError) {
      _ = try store.bucketExists("x", call)
      return (nil, Instant.now.since(start))
    } catch {
      return (error, Instant.now.since(start))
    }
  }

  /// Reads an object.
  func read(_ key: String, into sink: any GetSink, _ call: Call = Call()) -> StoreError? {
    do throws(StoreError) {
      _ = try store.get(
        GetRequest(object: ObjectName(bucket: "x", key: ByteString(key))), into: sink, call)
      return nil
    } catch {
      return error
    }
  }
}

extension NetworkOptions {
  static let quick = NetworkOptions(
    probes: Backoff(first: .milliseconds(50), longest: .milliseconds(400)),
    probeTimeout: .milliseconds(500), watchesLinks: false)

  /// Probes that come by themselves only after the test.
  static let slow = NetworkOptions(
    probes: Backoff(first: .seconds(300), longest: .seconds(600)),
    probeTimeout: .milliseconds(500), watchesLinks: false)
}

/// A server that can be switched to resetting every connection.
final class FlakyServer: Sendable {
  private let down: Locked<(isDown: Bool, resets: Int)>
  private let server: RawServer

  init(
    _ answer: @escaping @Sendable (RawConnection, RawRequest) -> Void = { connection, _ in
      connection.answer()
    }
  )
    throws
  {
    let down = Locked((isDown: false, resets: 0))
    self.down = down
    server = try RawServer { connection in
      while let request = connection.readRequest() {
        let isDown = down.withLock { down in
          if down.isDown { down.resets += 1 }
          return down.isDown
        }
        if isDown {
          connection.reset()
          down.wakeAll()
          return
        }
        answer(connection, request)
      }
    }
  }

  var isDown: Bool {
    get { down.withLock { $0.isDown } }
    set { down.withLock { $0.isDown = newValue } }
  }

  /// Waits until a number of requests has been met with a reset.
  func waitForResets(_ count: Int) -> Bool {
    down.wait(until: .now + .seconds(10)) { $0.resets >= count ? true : nil } ?? false
  }

  var url: String { server.url }
  var port: UInt16 { server.port }
  var requests: [RawRequest] { server.requests }
  func waitForRequests(_ count: Int) -> Bool { server.waitForRequests(count) }
}
