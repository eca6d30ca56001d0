import BucketStore
import Platform
import TestSupport
import Testing

@Suite struct HTTPClientTests {
  let client: HTTPClient

  init() throws {
    client = try HTTPClient()
  }

  @Test func anAnswerArrivesWithStatusHeadersAndBody() throws {
    let server = try RawServer.keeping { connection, _ in
      connection.send(
        "HTTP/1.1 404 Not Found\r\nX-One: first\r\nx-one:  last \r\nETag: \"a b\"\r\n"
          + "Empty:\r\nContent-Length: 4\r\n\r\ngone")
    }
    let response = try client.get(server.url + "/x")
    #expect(response.status == 404)
    #expect(response.headers["x-one"] == "last")
    #expect(response.headers["etag"] == "\"a b\"")
    #expect(response.headers["empty"] == "")
    #expect(response.body == Array("gone".utf8))
  }

  @Test func aPathArrivesUnchangedWithDotSegmentsAndEscapes() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    for target in ["/a/../b/%2e%2e/./c", "/..//x//?a=%2F+;b=../.", "/%00%ff/%25", "/", "/?"] {
      _ = try client.get(server.url + target)
      #expect(server.requests.last?.target == target)
    }
  }

  @Test func methodHeadersAndBodyArriveAsGiven() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
      let request = HTTPRequest(
        method, server.url + "/up", headers: [("X-A", "b: c"), ("X-Empty", "")], body: body)
      #expect(try client.perform(request, into: nil, Call()).status == 200)
      let seen = try #require(server.requests.last)
      #expect(seen.method == method)
      #expect(seen.body == body)
      #expect(seen.header("x-a") == "b: c")
      #expect(seen.header("x-empty") == "")
      #expect(seen.header("content-length") == "300000")
      #expect(seen.header("content-type") == nil)
      #expect(seen.header("expect") == nil)
      #expect(seen.header("transfer-encoding") == nil)
    }
  }

  @Test func aPostWithoutABodySaysThatItIsEmpty() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    _ = try client.perform(HTTPRequest("POST", server.url + "/"), into: nil, Call())
    _ = try client.perform(HTTPRequest("GET", server.url + "/"), into: nil, Call())
    #expect(server.requests.map { $0.header("content-length") } == ["0", nil])
  }

  @Test func anAnswerToHeadHasNoBodyWhateverItsLengthSays() throws {
    let server = try RawServer.keeping { connection, _ in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    }
    let response = try client.perform(HTTPRequest("HEAD", server.url + "/"), into: nil, Call())
    #expect(response.headers["content-length"] == "5000")
    #expect(response.body.isEmpty)
  }

  @Test func onlyASuccessReachesTheSink() throws {
    let server = try RawServer.keeping { connection, request in
      connection.answer(request.target == "/yes" ? "206 Partial Content" : "503 Busy", "bytes")
    }
    let refused = RecordingSink()
    let answer = try client.get(server.url + "/no", into: refused)
    #expect(answer.status == 503)
    #expect(answer.body == Array("bytes".utf8))
    #expect(refused.record.responses.isEmpty)
    #expect(refused.record.count == 0)

    let taken = RecordingSink()
    let success = try client.get(server.url + "/yes", into: taken)
    #expect(success.status == 206)
    #expect(success.body.isEmpty)
    #expect(taken.record.responses.map(\.status) == [206])
    #expect(taken.record.bytes == Array("bytes".utf8))
  }

  @Test func theSinkLearnsOfTheHeadBeforeAnyByteIsSent() throws {
    let release = Cancellation()
    let server = try RawServer.keeping { connection, _ in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
      _ = release.sleep(until: .now + .seconds(20))
      connection.send("abc")
    }
    let sink = RecordingSink { count in
      if count == 0 { release.cancel() }
      return true
    }
    _ = try client.get(server.url + "/", into: sink)
    #expect(release.isCancelled)
    #expect(sink.record.bytes == Array("abc".utf8))
  }

  @Test func anEmptySuccessBeginsTheSink() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    let sink = RecordingSink()
    _ = try client.get(server.url + "/", into: sink)
    #expect(sink.record.responses.count == 1)
    #expect(sink.record.count == 0)
  }

  @Test func interimAnswersAndTrailersAreNotTheAnswer() throws {
    let server = try RawServer.keeping { connection, _ in
      connection.send(
        "HTTP/1.1 103 Early Hints\r\nLink: early\r\n\r\nHTTP/1.1 200 OK\r\nX-Real: 1\r\n"
          + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Real: trailer\r\n\r\n")
    }
    let sink = RecordingSink()
    let response = try client.get(server.url + "/", into: sink)
    #expect(response.status == 200)
    #expect(response.headers["link"] == nil)
    #expect(response.headers["x-real"] == "1")
    #expect(sink.record.responses.count == 1)
    #expect(sink.record.bytes == Array("abc".utf8))
  }

  @Test func aRedirectIsAnAnswerAndIsNotFollowed() throws {
    let server = try RawServer.keeping { connection, _ in
      connection.answer("302 Found", headers: ["Location: /elsewhere"])
    }
    #expect(try client.get(server.url + "/").status == 302)
    #expect(server.requests.count == 1)
  }

  @Test func objectsAreAskedForUncompressedAndListingsMayCompress() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    _ = try client.get(server.url + "/")
    _ = try client.perform(
      HTTPRequest("POST", server.url + "/", allowsCompression: true), into: nil, Call())
    #expect(server.requests.first?.header("accept-encoding") == "identity")
    #expect(server.requests.last?.header("accept-encoding")?.contains("gzip") == true)
  }

  @Test func aThousandRequestsInARowShareOneConnection() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer("200 OK", "hello") }
    for _ in 0..<1000 {
      #expect(try client.get(server.url + "/").body.count == 5)
    }
    #expect(server.accepted == 1)
    #expect(server.requests.count == 1000)
    #expect(client.counters.requests == 1000)
    #expect(client.counters.bytesIn > 5000)
  }

  @Test func aKeptConnectionThatTheServerClosedIsReplacedUnseen() throws {
    let server = try RawServer { connection in
      if connection.readRequest() != nil { connection.answer() }
    }
    for _ in 0..<20 { #expect(try client.get(server.url + "/").status == 200) }
    #expect(server.accepted == 20)
  }

  @Test func distrustedConnectionsAreNotUsedAgain() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    _ = try client.get(server.url + "/")
    client.distrustConnections()
    _ = try client.get(server.url + "/")
    #expect(server.accepted == 2)
  }

  @Test func bytesPastTheAnnouncedLengthAreDropped() throws {
    let server = try RawServer.keeping { connection, _ in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdefHTTP/1.1 500 No\r\n\r\n")
    }
    for _ in 0..<3 {
      let response = try client.get(server.url + "/")
      #expect(response.status == 200)
      #expect(response.body == Array("abc".utf8))
    }
  }
}
