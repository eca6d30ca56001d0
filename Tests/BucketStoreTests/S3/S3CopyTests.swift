import BucketStore
import Platform
import TestSupport
import Testing

/// Copies that take the server long.
@Suite struct S3CopyTests {
  private static let servers: [S3Server.Kind] = [.seaweed, .moto]
  private static let part = 5 << 20

  @Test(arguments: servers) func aLargeObjectIsCopiedPieceByPieceWithAllThatDescribesIt(
    _ kind: S3Server.Kind
  ) throws {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("big")
    let bytes = mixedBytes(2 * Self.part + 77)
    let source = fixture.object("big", "a")
    try fixture.send(
      "PUT", fixture.address.target(bucket: source.bucket, key: source.key), fixture.server.user,
      bytes,
      headers: [
        ("Content-Type", "video/mp4"), ("Cache-Control", "max-age=77"), ("x-amz-meta-mtime", "1.5"),
      ])
    let wire = InterceptedTransport(fixture.client)
    let user = fixture.server.user
    let store = S3Store(
      address: fixture.address, credentials: { user }, transport: wire,
      copyLimit: Int64(Self.part), copyPart: Int64(Self.part))
    try store.move(source, to: "b", Call())
    let pieces = wire.sent.filter { $0.header("x-amz-copy-source-range") != nil }
    #expect(pieces.count == 3)
    let target = fixture.object("big", "b")
    let sink = CollectingSink()
    _ = try store.get(GetRequest(object: target), into: sink, Call())
    #expect(sink.bytes == bytes)
    let info = try store.info(target, Call())
    #expect(info.contentType == "video/mp4")
    #expect(info.userMetadata == ["mtime": "1.5"])
    let begin = try #require(wire.sent.first { $0.url.hasSuffix("?uploads=") })
    #expect(begin.header("Cache-Control") == "max-age=77")
    #expect(throws: StoreError.self) { try store.info(source, Call()) }
  }

  /// One request takes them along, and copying in parts would not.
  @Test func aLargeObjectWithTagsIsCopiedInOneRequest() throws {
    let fixture = try S3Fixture(.seaweed)
    try fixture.createBucket("big")
    try fixture.put("big", "a", mixedBytes(Self.part + 77))
    let wire = InterceptedTransport(
      fixture.client,
      after: { request, response in
        if request.method == "HEAD" { response.headers["x-amz-tagging-count"] = "1" }
      })
    let user = fixture.server.user
    let store = S3Store(
      address: fixture.address, credentials: { user }, transport: wire,
      copyLimit: Int64(Self.part), copyPart: Int64(Self.part))
    try store.copy(
      fixture.object("big", "a"), to: fixture.object("big", "b"), overwriting: false, Call())
    let copies = wire.sent.filter { $0.header("x-amz-copy-source") != nil }
    #expect(copies.count == 1)
    #expect(copies.first?.header("x-amz-copy-source-range") == nil)
    #expect(try store.info(fixture.object("big", "b"), Call()).size == Int64(Self.part + 77))
  }

  @Test func theServerMayBeSilentAsLongAsItCopies() throws {
    let fixture = try S3Fixture(.seaweed)
    try fixture.createBucket("big")
    try fixture.put("big", "a", [1])
    let wire = InterceptedTransport(
      fixture.client,
      after: { request, response in
        // 256 MiB, the most that one request copies.
        if request.method == "HEAD" { response.headers["content-length"] = "268435456" }
      })
    let store = fixture.makeStore(wire)
    try store.copy(
      fixture.object("big", "a"), to: fixture.object("big", "b"), overwriting: false,
      Call(timeout: .seconds(10)))
    let (copies, others) = zip(wire.sent, wire.timeouts).reduce(into: ([Span](), [Span]())) {
      if $1.0.header("x-amz-copy-source") == nil {
        $0.1.append($1.1)
      } else {
        $0.0.append($1.1)
      }
    }
    #expect(copies == [.seconds(26)])
    #expect(!others.isEmpty && others.allSatisfy { $0 == .seconds(10) })
  }
}
