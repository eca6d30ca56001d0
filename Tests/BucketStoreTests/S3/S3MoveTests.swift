import BucketStore
import Platform
import TestSupport
import Testing

/// Moves, which S3 does not have, among other writers and against refusals.
@Suite struct S3MoveTests {
  private let fixture: S3Fixture

  init() throws {
    // It does not look at signatures: a condition can be taken out on the way.
    fixture = try S3Fixture(.moto)
    try fixture.createBucket("moves")
    try fixture.put("moves", "a", [1])
  }

  private func object(_ key: String) -> ObjectName { fixture.object("moves", key) }

  /// The object's bytes; nil when there is none.
  private func read(_ key: String) throws -> [UInt8]? {
    let sink = CollectingSink()
    do throws(StoreError) {
      _ = try fixture.makeStore().get(GetRequest(object: object(key)), into: sink, Call())
      return sink.bytes
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
  }

  private func kind(_ body: () throws(StoreError) -> Void) -> StoreError.Kind? {
    do throws(StoreError) {
      try body()
      return nil
    } catch {
      return error.kind
    }
  }

  /// A server that forgets the conditions of deletions, at which something is done once the object
  /// was copied and the copy was looked at.
  private func forgetful(
    onceCopied action: @escaping @Sendable () throws -> Void
  ) -> ForgetfulWire { ForgetfulWire(fixture.client, action) }

  final class ForgetfulWire: HTTPTransport {
    private let inner: any HTTPTransport
    private let action: @Sendable () throws -> Void
    private let progress = Locked((isCopied: false, isDone: false))

    init(_ inner: any HTTPTransport, _ action: @escaping @Sendable () throws -> Void) {
      self.inner = inner
      self.action = action
    }

    func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
      throws(StoreError) -> HTTPResponse
    {
      var request = request
      if request.method == "DELETE" { request.headers.removeAll { $0.name == "If-Match" } }
      let response = try inner.perform(request, into: sink, call)
      let isNow = progress.withLock { progress in
        if request.header("x-amz-copy-source") != nil { progress.isCopied = true }
        guard progress.isCopied, !progress.isDone, request.method == "HEAD" else { return false }
        progress.isDone = true
        return true
      }
      if isNow {
        do { try action() } catch { Issue.record(error) }
      }
      return response
    }
  }

  @Test(arguments: [false, true]) func whatAnotherWritesDuringAMoveIsNotDeleted(
    overwriting: Bool
  ) throws {
    if overwriting { try fixture.put("moves", "b", [9]) }
    let fixture = fixture
    let store = fixture.makeStore(forgetful { try fixture.put("moves", "a", [2]) })
    #expect(
      kind { () throws(StoreError) in
        try store.move(object("a"), to: object("b"), overwriting: overwriting, Call())
      } == .conflict)
    #expect(try read("a") == [2])
    // What was replaced is gone: taking the copy away would leave the name empty.
    #expect(try read("b") == (overwriting ? [1] : nil))
  }

  @Test func theTargetThatAnotherHasWrittenSinceIsNotTakenAway() throws {
    let fixture = fixture
    let store = fixture.makeStore(
      forgetful {
        try fixture.put("moves", "a", [2])
        try fixture.put("moves", "b", [3])
      })
    #expect(
      kind { () throws(StoreError) in try store.move(object("a"), to: "b", Call()) } == .conflict)
    #expect(try read("a") == [2])
    #expect(try read("b") == [3])
  }

  @Test func aSourceThatIsGoneMeanwhileIsMoved() throws {
    let fixture = fixture
    let store = fixture.makeStore(forgetful { try fixture.remove("moves", "a") })
    try store.move(object("a"), to: "b", Call())
    #expect(try read("a") == nil)
    #expect(try read("b") == [1])
  }

  @Test func theDeletionNamesTheVersionThatWasCopied() throws {
    let wire = InterceptedTransport(fixture.client)
    let store = fixture.makeStore(wire)
    let tag = try #require(try store.info(object("a"), Call()).tag)
    try store.move(object("a"), to: "b", Call())
    let deletion = try #require(wire.sent.first { $0.method == "DELETE" })
    #expect(deletion.header("If-Match") == tag)
    #expect(try read("a") == nil)
    #expect(try read("b") == [1])
  }

  /// Each further try finds what the first one found.
  @Test func aMoveWhoseDeletionIsRefusedLeavesOneName() throws {
    let wire = InterceptedTransport(fixture.client) { request in
      request.method == "DELETE" && request.url.hasSuffix("/a") ? .s3(403, "AccessDenied") : nil
    }
    let store = fixture.makeStore(wire)
    for _ in 0..<2 {
      #expect(
        kind { () throws(StoreError) in try store.move(object("a"), to: "b", Call()) }
          == .refused)
      #expect(try read("a") == [1])
      #expect(try read("b") == nil)
    }
  }

  /// Nothing is taken away on the word of a server that may have done what it was asked to.
  @Test func aMoveWhoseDeletionFailedUnseenKeepsTheCopy() throws {
    let wire = InterceptedTransport(fixture.client) { request in
      request.method == "DELETE" ? .s3(500, "InternalError") : nil
    }
    let store = fixture.makeStore(wire)
    #expect(
      kind { () throws(StoreError) in try store.move(object("a"), to: "b", Call()) } == .server)
    #expect(try read("a") == [1])
    #expect(try read("b") == [1])
  }

  @Test func aMoveReplacesWhatHasTheNameWhereItIsToldTo() throws {
    try fixture.put("moves", "b", [9])
    let store = fixture.makeStore()
    #expect(
      kind { () throws(StoreError) in
        try store.move(object("a"), to: object("b"), overwriting: false, Call())
      } == .exists)
    try store.move(object("a"), to: object("b"), overwriting: true, Call())
    #expect(try read("a") == nil)
    #expect(try read("b") == [1])
  }
}
