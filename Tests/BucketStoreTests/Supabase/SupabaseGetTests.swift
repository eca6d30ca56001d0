import Platform
import TestSupport
import Testing

@testable import BucketStore

@Suite struct SupabaseGetTests {
  static let name = ObjectName(bucket: "docs", key: "a/b.jpg")

  /// Reads through a store that gets the answers in turn, the last one for ever.
  private func read(
    asking request: GetRequest = GetRequest(object: name),
    sink: CollectingSink = CollectingSink(), _ answers: HTTPResponse...
  ) throws -> (outcome: Result<GetOutcome, StoreError>, sink: CollectingSink, sent: [HTTPRequest]) {
    let transport = ScriptedTransport { _, index in
      .success(answers[min(index, answers.count - 1)])
    }
    let store = try SupabaseStore.scripted(transport)
    do throws(StoreError) {
      return (.success(try store.get(request, into: sink, Call())), sink, transport.sent)
    } catch {
      return (.failure(error), sink, transport.sent)
    }
  }

  private func failure(_ result: Result<GetOutcome, StoreError>) -> StoreError.Kind? {
    if case .failure(let error) = result { return error.kind }
    return nil
  }

  @Test func anObjectIsHandedOnWithItsHead() throws {
    let (outcome, sink, sent) = try read(.object("hello world"))
    let head = ObjectHead(
      size: 11, range: 0..<11, tag: "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"",
      modified: Timestamp(seconds: 1_777_285_857), contentType: "image/jpeg")
    #expect(try outcome.get() == .complete(head))
    #expect(sink.heads == [head])
    #expect(sink.text == "hello world")
    #expect(sent.count == 1)
    #expect(sent[0].method == "GET")
    #expect(
      sent[0].url == "https://ref.supabase.co/storage/v1/object/authenticated/docs/a/b.jpg")
    #expect(sent[0].header("apikey") == "sb_publishable_test")
    #expect(sent[0].header("Authorization") == nil)
    #expect(sent[0].header("X-Client-Info")?.hasPrefix("bucketfs/") == true)
    #expect(sent[0].header("Accept-Encoding") == "identity")
    #expect(sent[0].header("Range") == nil)
    #expect(sent[0].header("If-None-Match") == nil)
  }

  @Test func keysAreEncodedOnce() throws {
    let key: ByteString = "a%41/b?c#d+e;f g/../ä&=@"
    let (_, _, sent) = try read(
      asking: GetRequest(object: ObjectName(bucket: "my docs", key: key), fresh: "a&b=/ c"),
      .object("x"))
    #expect(
      sent[0].url == "https://ref.supabase.co/storage/v1/object/authenticated/my%20docs/"
        + "a%2541/b%3Fc%23d%2Be%3Bf%20g/../%C3%A4%26%3D%40?cacheNonce=a%26b%3D%2F%20c")
  }

  @Test func aPartIsAskedForAndCheckedAgainstTheAnswer() throws {
    let request = GetRequest(object: Self.name, range: 6..<11)
    let (outcome, sink, sent) = try read(
      asking: request, .object("world", 206, ["content-range": "bytes 6-10/11"]))
    #expect(sent[0].header("Range") == "bytes=6-10")
    guard case .complete(let head) = try outcome.get() else {
      Issue.record("not complete")
      return
    }
    #expect(head.range == 6..<11)
    #expect(head.size == 11)
    #expect(sink.text == "world")
  }

  @Test func anEndBeyondTheObjectIsCutByTheServer() throws {
    let request = GetRequest(object: Self.name, range: 6..<100)
    let (outcome, sink, _) = try read(
      asking: request, .object("world", 206, ["content-range": "bytes 6-10/11"]))
    #expect(sink.heads.first?.range == 6..<11)
    #expect(failure(outcome) == nil)
  }

  @Test func theWholeInPlaceOfAPartSaysSo() throws {
    let request = GetRequest(object: Self.name, range: 6..<11)
    let (outcome, sink, _) = try read(asking: request, .object("hello world"))
    #expect(failure(outcome) == nil)
    #expect(sink.heads.first?.range == 0..<11)
    #expect(sink.text == "hello world")
  }

  @Test func anEmptyRangeIsNeverSent() throws {
    let (_, _, sent) = try read(asking: GetRequest(object: Self.name, range: 0..<0), .object(""))
    #expect(sent[0].header("Range") == nil)
  }

  @Test(arguments: [
    "bytes 5-9/11", "bytes 6-9/11", "bytes 6-11/12", "bytes 6-10/8", "bytes 10-6/11", "bytes 6-10",
    "6-10/11", "bytes */11", "bytes 6-99999999999999999999/11", "bytes +6-10/11", "",
  ])
  func anotherPartThanAskedForIsRefused(contentRange: String) throws {
    let request = GetRequest(object: Self.name, range: 6..<11)
    let (outcome, sink, _) = try read(
      asking: request, .object("world", 206, ["content-range": contentRange]))
    #expect(failure(outcome) == .damaged)
    #expect(sink.heads.isEmpty)
  }

  @Test func aPartThatNobodyAskedForIsRefused() throws {
    let (outcome, sink, _) = try read(.object("world", 206, ["content-range": "bytes 6-10/11"]))
    #expect(failure(outcome) == .damaged)
    #expect(sink.heads.isEmpty)
  }

  @Test func anUnchangedObjectIsNotModified() throws {
    let request = GetRequest(object: Self.name, unlessTag: "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"")
    let (outcome, sink, sent) = try read(
      asking: request, HTTPResponse(status: 304, headers: [:], body: []))
    #expect(try outcome.get() == .notModified)
    #expect(sink.heads.isEmpty)
    #expect(sent[0].header("If-None-Match") == "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"")
  }

  @Test func weakTagsAreStrippedBothWays() throws {
    let request = GetRequest(object: Self.name, unlessTag: "W/\"abc\"")
    let (_, sink, sent) = try read(asking: request, .object("x", 200, ["etag": "W/\"def\""]))
    #expect(sent[0].header("If-None-Match") == "\"abc\"")
    #expect(sink.heads.first?.tag == "\"def\"")
  }

  @Test func notModifiedToAPlainQuestionIsAFault() throws {
    #expect(
      failure(try read(HTTPResponse(status: 304, headers: [:], body: [])).outcome) == .server)
    let request = GetRequest(object: Self.name, unlessTag: "\"a\"")
    let other = HTTPResponse(status: 304, headers: ["etag": "\"b\""], body: [])
    #expect(failure(try read(asking: request, other).outcome) == .server)
  }

  @Test(
    arguments: [
      ["etag": nil], ["accept-ranges": nil], ["content-type": "text/html; charset=utf-8"],
      ["content-type": "TEXT/HTML"], ["content-encoding": "gzip"], ["content-length": "eleven"],
      ["content-length": "-1"],
    ] as [[String: String?]])
  func aPageOfACaptivePortalNeverBecomesContent(changes: [String: String?]) throws {
    let (outcome, sink, _) = try read(.object("hello world", 200, changes))
    #expect(failure(outcome) == .server)
    #expect(sink.heads.isEmpty)
    #expect(sink.bytes.isEmpty)
  }

  @Test(arguments: [201, 202, 203, 204, 207, 226])
  func onlyTheTwoSuccessesOfAReadAreTaken(status: Int) throws {
    let (outcome, sink, _) = try read(.object("hello world", status))
    #expect(failure(outcome) == .server)
    #expect(sink.heads.isEmpty)
  }

  @Test(arguments: ["10", "12"])
  func aBodyOfAnotherLengthIsDamaged(length: String) throws {
    let (outcome, _, _) = try read(.object("hello world", 200, ["content-length": length]))
    #expect(failure(outcome) == .damaged)
  }

  @Test func aSinkThatDeclinesEndsTheTransfer() throws {
    let (outcome, _, _) = try read(sink: CollectingSink(limit: 4), .object("hello world"))
    #expect(failure(outcome) == .cancelled)
  }

  @Test func errorsHandNothingOn() throws {
    let (outcome, sink, _) = try read(
      .failure(400, "404", "not_found", "Object not found", code: "NoSuchKey"))
    #expect(failure(outcome) == .notFound)
    #expect(sink.heads.isEmpty && sink.bytes.isEmpty)
  }

  @Test func anUnknownRouteIsNoMissingObject() throws {
    let (outcome, _, _) = try read(
      .failure(404, "404", "Not Found", "Route GET:/x not found", code: "InvalidRequest"))
    #expect(failure(outcome) == .unsupported)
  }

  private static let facts = HTTPResponse.json(
    200,
    #"{"id":"1","name":"a/b.jpg","version":"v2","size":11,"etag":"\"t\"","metadata":null}"#)

  @Test func bytesThatAreBeingReplacedAreAskedForOnceMore() throws {
    let missing = HTTPResponse.failure(400, "404", "Not found", "The resource was not found")
    let (outcome, sink, sent) = try read(missing, Self.facts, .object("hello world"))
    #expect(failure(outcome) == nil)
    #expect(sink.text == "hello world")
    #expect(sent.count == 3)
    #expect(sent[1].url.contains("/object/info/authenticated/docs/a/b.jpg"))
    #expect(sent[2].url.hasSuffix("?cacheNonce=v2"))
  }

  @Test func bytesThatStayMissingAreTheServersFault() throws {
    let missing = HTTPResponse.failure(400, "404", "Not found", "The resource was not found")
    let (outcome, _, sent) = try read(missing, Self.facts, missing)
    #expect(failure(outcome) == .server)
    #expect(sent.count == 3)
  }

  @Test func bytesThatAreMissingOfAnObjectThatIsGoneAreNotFound() throws {
    let missing = HTTPResponse.failure(400, "404", "Not found", "The resource was not found")
    let (outcome, _, _) = try read(
      missing, .failure(400, "404", "not_found", "Object not found", code: "NoSuchKey"))
    #expect(failure(outcome) == .notFound)
  }

  @Test func aPartBeyondAnObjectThatShrankIsDamaged() throws {
    let internalError = HTTPResponse.failure(500, "500", "Internal", "Internal Server Error")
    let beyond = GetRequest(object: Self.name, range: 11..<20)
    #expect(failure(try read(asking: beyond, internalError, Self.facts).outcome) == .damaged)
    let within = GetRequest(object: Self.name, range: 10..<20)
    #expect(failure(try read(asking: within, internalError, Self.facts).outcome) == .server)
    let local = HTTPResponse.failure(416, "416", "invalid_range", "invalid range provided")
    #expect(failure(try read(asking: beyond, local).outcome) == .damaged)
  }

  @Test func randomHeadersNeverTrap() throws {
    var random = SeededGenerator(seed: 21)
    var taken = 0
    for _ in 0..<4_000 {
      func number() -> String {
        ["0", "5", "10", "11", "-1", "99999999999999999999", "9223372036854775807", "x"][
          Int.random(in: 0..<8, using: &random)]
      }
      let answer = HTTPResponse.object(
        "world", Bool.random(using: &random) ? 206 : 200,
        [
          "content-range": "bytes \(number())-\(number())/\(number())",
          "content-length": number(), "last-modified": random.awkwardBytes().description,
          "etag": random.awkwardBytes().description,
        ])
      let range = Bool.random(using: &random) ? Int64(5)..<11 : nil
      do throws(StoreError) {
        _ = try SupabaseHead.read(
          answer, GetRequest(object: Self.name, range: range))
        taken += 1
      } catch {
        #expect(error.kind == .server || error.kind == .damaged)
      }
    }
    #expect(taken > 0)
  }
}
