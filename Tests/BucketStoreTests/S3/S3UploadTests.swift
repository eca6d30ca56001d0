import BucketStore
import Platform
import TestSupport
import Testing

/// Uploads in parts: what is sent, what is not sent again, and on which condition.
@Suite struct S3UploadTests {
  /// Notes the requests that pass, and fails those that it is told to.
  private final class WatchedTransport: HTTPTransport {
    private struct State {
      var parts: [Int] = []
      var queries: [String] = []
      var failing: Int?
    }

    private let inner: any HTTPTransport
    private let state = Locked(State())

    init(_ inner: any HTTPTransport) {
      self.inner = inner
    }

    /// Numbers of the parts that were sent.
    var parts: [Int] { state.withLock { $0.parts } }

    /// The connection breaks before this part.
    func fail(part: Int?) { state.withLock { $0.failing = part } }

    func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
      throws(StoreError) -> HTTPResponse
    {
      let number = Self.part(of: request)
      if let number, state.withLock({ $0.failing == number }) {
        throw StoreError(.connectivity, "the line is cut")
      }
      if let number { state.withLock { $0.parts.append(number) } }
      return try inner.perform(request, into: sink, call)
    }

    private static func part(of request: HTTPRequest) -> Int? {
      guard request.method == "PUT", let start = request.url.range(of: "partNumber=") else {
        return nil
      }
      return Int(request.url[start.upperBound...].prefix { $0.isNumber })
    }
  }

  private static let servers: [S3Server.Kind] = [.seaweed, .moto]
  private static let part = 5 << 20
  private let bytes = mixedBytes(2 * S3UploadTests.part + 12_345)

  private func request(
    _ fixture: S3Fixture, _ key: String, _ condition: PutRequest.Condition = .none
  ) -> PutRequest {
    PutRequest(
      object: fixture.object("big", key), size: Int64(bytes.count), contentType: "video/mp4",
      userMetadata: ["mtime": "1.5", "sha256": "ab"], condition: condition)
  }

  private func read(_ store: S3Store, _ object: ObjectName) throws -> [UInt8] {
    let sink = CollectingSink()
    _ = try store.get(GetRequest(object: object), into: sink, Call())
    return sink.bytes
  }

  @Test(arguments: servers) func anUploadThatBrokeSendsOnlyWhatIsMissing(
    _ kind: S3Server.Kind
  ) throws {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("big")
    let wire = WatchedTransport(fixture.client)
    let store = fixture.makeStore(wire, partSize: Int64(Self.part))
    let request = request(fixture, "film.mp4", .absent)
    let token = try store.beginUpload(request, Call())
    wire.fail(part: 3)
    let source = BytesSource(bytes)
    #expect(throws: StoreError.self) {
      try store.continueUpload(token, request, from: source, progress: { _ in }, Call())
    }
    #expect(wire.parts == [1, 2])
    #expect(throws: StoreError.self) { try store.info(request.object, Call()) }

    // Another process, with another size of parts in mind.
    wire.fail(part: nil)
    let again = fixture.makeStore(wire, partSize: 8 << 20)
    let sent = Locked<[Int64]>([])
    try again.continueUpload(
      token, request, from: source, progress: { count in sent.withLock { $0.append(count) } },
      Call())
    #expect(wire.parts == [1, 2, 3])
    #expect(sent.withLock { $0.last } == Int64(bytes.count))
    #expect(try read(store, request.object) == bytes)
    let info = try store.info(request.object, Call())
    #expect(info.contentType == "video/mp4")
    #expect(info.userMetadata == ["mtime": "1.5", "sha256": "ab"])
    #expect(info.tag?.hasSuffix("-3\"") == true)
    // The answer may have been lost: it is found to be done.
    try again.continueUpload(token, request, from: source, progress: { _ in }, Call())
    #expect(wire.parts == [1, 2, 3])
  }

  @Test(arguments: servers) func anUploadIsRefusedWhereThereIsAnObjectMeanwhile(
    _ kind: S3Server.Kind
  ) throws {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("big")
    let store = fixture.makeStore(partSize: Int64(Self.part))
    let request = request(fixture, "film.mp4", .absent)
    let token = try store.beginUpload(request, Call())
    try fixture.put("big", "film.mp4", [1])
    do {
      try store.continueUpload(
        token, request, from: BytesSource(bytes), progress: { _ in }, Call())
      Issue.record("another's object was overwritten")
    } catch {
      #expect(error.kind == .exists)
    }
    #expect(try read(store, request.object) == [1])
    try store.abandonUpload(token, request, Call())
    try store.abandonUpload(token, request, Call())
  }

  @Test(arguments: servers) func aForgottenUploadIsNotFound(_ kind: S3Server.Kind) throws {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("big")
    let store = fixture.makeStore(partSize: Int64(Self.part))
    let request = request(fixture, "film.mp4")
    let token = try store.beginUpload(request, Call())
    try store.abandonUpload(token, request, Call())
    do {
      try store.continueUpload(
        token, request, from: BytesSource(bytes), progress: { _ in }, Call())
      Issue.record("it was not forgotten")
    } catch {
      #expect(error.kind == .notFound)
    }
  }

  /// A server that takes conditions and does not keep them.
  private struct ForgetfulTransport: HTTPTransport {
    let inner: any HTTPTransport

    func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
      throws(StoreError) -> HTTPResponse
    {
      var request = request
      if request.method != "GET", request.method != "HEAD" {
        request.headers.removeAll { ["If-Match", "If-None-Match"].contains($0.name) }
      }
      return try inner.perform(request, into: sink, call)
    }
  }

  /// One that says so.
  private struct SimpleTransport: HTTPTransport {
    let inner: any HTTPTransport

    func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
      throws(StoreError) -> HTTPResponse
    {
      let isConditional = request.headers.contains {
        ["If-Match", "If-None-Match"].contains($0.name)
      }
      if isConditional, request.method != "GET" {
        let body = "<Error><Code>NotImplemented</Code><Message>no</Message></Error>"
        return HTTPResponse(status: 501, headers: [:], body: Array(body.utf8))
      }
      return try inner.perform(request, into: sink, call)
    }
  }

  @Test(arguments: [true, false]) func withoutConditionsTheObjectIsLookedAtFirst(
    isSilent: Bool
  ) throws {
    // What is taken out on the way was signed, which moto does not look at.
    let fixture = try S3Fixture(isSilent ? .moto : .seaweed)
    try fixture.createBucket("big")
    let wire: any HTTPTransport =
      isSilent
      ? ForgetfulTransport(inner: fixture.client) : SimpleTransport(inner: fixture.client)
    let store = fixture.makeStore(wire)
    func put(_ key: String, _ bytes: [UInt8], _ condition: PutRequest.Condition) throws {
      let request = PutRequest(
        object: fixture.object("big", key), size: Int64(bytes.count), contentType: "text/plain",
        userMetadata: [:], condition: condition)
      try store.put(request, from: BytesSource(bytes), progress: { _ in }, Call())
    }
    func kind(_ body: () throws -> Void) -> StoreError.Kind? {
      do {
        try body()
        return nil
      } catch {
        return (error as? StoreError)?.kind
      }
    }
    try put("a", [1], .absent)
    #expect(!store.writing.atomicCreate)
    #expect(kind { try put("a", [2], .absent) } == .exists)
    let version = try #require(try store.info(fixture.object("big", "a"), Call()).version)
    try put("a", [3], .version(version))
    #expect(!store.writing.atomicReplace)
    #expect(kind { try put("a", [4], .version(version)) } == .conflict)
    #expect(try read(store, fixture.object("big", "a")) == [3])
    try store.copy(
      fixture.object("big", "a"), to: fixture.object("big", "b"), overwriting: false, Call())
    try store.move(fixture.object("big", "a"), to: "c", Call())
    #expect(try read(store, fixture.object("big", "c")) == [3])
    #expect(kind { try store.move(fixture.object("big", "c"), to: "b", Call()) } == .exists)
  }

  @Test func bytesThatAreChangedOnTheWayAreRefused() throws {
    final class FlippingSource: PutSource {
      private let reads = Locked(0)

      func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        let count = reads.withLock { reads in
          reads += 1
          return reads
        }
        let bytes = [UInt8](repeating: count == 1 ? 7 : 8, count: min(buffer.count, 100))
        buffer.copyBytes(from: bytes)
        return bytes.count
      }
    }
    let fixture = try S3Fixture(.seaweed)
    try fixture.createBucket("big")
    let store = fixture.makeStore()
    let request = PutRequest(
      object: fixture.object("big", "a"), size: 100, contentType: "text/plain", userMetadata: [:],
      condition: .none)
    do {
      try store.put(request, from: FlippingSource(), progress: { _ in }, Call())
      Issue.record("damaged bytes were stored")
    } catch {
      #expect(error.kind == .damaged)
    }
    #expect(throws: StoreError.self) { try store.info(request.object, Call()) }
  }
}
