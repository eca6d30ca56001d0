import BucketStore
import Platform
import TestSupport
import Testing

@Suite struct HTTPFaultTests {
  let client: HTTPClient

  init() throws {
    client = try HTTPClient()
  }

  private func failure(
    into sink: RecordingSink? = nil, timeout: Span = .seconds(10),
    _ serve: @escaping @Sendable (RawConnection) -> Void
  ) throws -> StoreError? {
    let server = try RawServer { connection in
      _ = connection.readRequest()
      serve(connection)
    }
    return client.failure(
      HTTPRequest("GET", server.url + "/object"), into: sink, Call(timeout: timeout))
  }

  @Test func aBodyShorterThanAnnouncedIsDamaged() throws {
    let sink = RecordingSink()
    let error = try failure(into: sink) { connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcd")
    }
    #expect(error?.kind == .damaged)
    #expect(sink.record.bytes == Array("abcd".utf8))
  }

  @Test func aChunkedBodyWithoutItsEndIsDamaged() throws {
    let error = try failure(into: RecordingSink()) { connection in
      connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n")
    }
    #expect(error?.kind == .damaged)
  }

  @Test func aResetIsALostConnection() throws {
    let early = try failure { connection in connection.reset() }
    #expect(early?.kind == .connectivity)
    let late = try failure(into: RecordingSink()) { connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcd")
      connection.pause(.milliseconds(50))
      connection.reset()
    }
    #expect(late?.kind == .connectivity)
  }

  @Test func aConnectionClosedWithoutAWordIsALostConnection() throws {
    #expect(try failure { _ in }?.kind == .connectivity)
  }

  @Test func aPortWhereNobodyListensIsALostConnection() throws {
    let server = try RawServer { _ in }
    server.stop()
    let error = client.failure(HTTPRequest("GET", server.url + "/"))
    #expect(error?.kind == .connectivity)
    #expect(error?.message.contains("127.0.0.1") == true)
  }

  @Test func anUnknownHostIsALostConnectionTimeAfterTime() throws {
    // The name is reserved never to exist (RFC 2606).
    for _ in 0..<4 {
      let error = client.failure(
        HTTPRequest("GET", "https://nowhere.invalid/"), Call(timeout: .seconds(20)))
      #expect(error?.kind == .connectivity)
    }
    let server = try RawServer { connection in
      if connection.readRequest() != nil { connection.answer() }
    }
    #expect(client.failure(HTTPRequest("GET", server.url + "/")) == nil)
  }

  @Test(arguments: [
    "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 abc\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
  ])
  func whatIsNoHTTPIsTheServersFault(answer: String) throws {
    #expect(try failure { $0.send(answer) }?.kind == .server)
  }

  @Test func headersWithoutBoundAreCutOff() throws {
    let error = try failure { connection in
      connection.send("HTTP/1.1 200 OK\r\n")
      let line = "X-Long: " + String(repeating: "a", count: 8000) + "\r\n"
      while connection.send(line) {}
    }
    #expect(error?.kind == .server)
  }

  @Test func ofARefusalTheFirstMegabyteIsKept() throws {
    let server = try RawServer { connection in
      _ = connection.readRequest()
      connection.send("HTTP/1.1 502 Bad Gateway\r\n\r\n")
      let part = [UInt8](repeating: 97, count: 64 << 10)
      while connection.send(part) {}
    }
    let response = try client.get(server.url + "/", into: RecordingSink())
    #expect(response.status == 502)
    #expect(response.body.count == 1 << 20)
  }

  @Test func aSuccessWithoutASinkIsBounded() throws {
    let error = try failure { connection in
      connection.send("HTTP/1.1 200 OK\r\n\r\n")
      let part = [UInt8](repeating: 97, count: 1 << 20)
      while connection.send(part) {}
    }
    #expect(error?.kind == .server)
  }

  @Test func aSinkThatDeclinesEndsTheTransfer() throws {
    for bound in [0, 1] {
      let sink = RecordingSink { $0 < bound }
      let error = try failure(into: sink) { connection in
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        connection.hold()
      }
      #expect(error?.kind == .cancelled)
      #expect(sink.record.count == (bound == 0 ? 0 : 3))
    }
  }

  @Test func silenceEndsAtTheDeadlineAtEveryStage() throws {
    let stages: [@Sendable (RawConnection) -> Void] = [
      { $0.hold() },
      { connection in
        connection.send("HTTP/1.1 200 OK\r\nX-A: b\r\n")
        connection.hold()
      },
      { connection in
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        connection.hold()
      },
    ]
    for stage in stages {
      let start = Instant.now
      let error = try failure(into: RecordingSink(), timeout: .milliseconds(300), stage)
      let taken = Instant.now.since(start)
      #expect(error?.kind == .timeout)
      #expect(taken >= .milliseconds(300))
      #expect(taken < .seconds(3))
    }
  }

  @Test func aServerWhoseDoorIsFullEndsAtTheDeadline() throws {
    // Nobody accepts, and the kernel's queue holds one: further connections are not answered.
    let release = Cancellation()
    defer { release.cancel() }
    let server = try RawServer(backlog: 0) { _ in _ = release.sleep(until: .now + .seconds(30)) }
    let results = try inParallel(6) { [client] _ in
      let start = Instant.now
      let error = client.failure(
        HTTPRequest("GET", server.url + "/"), Call(timeout: .milliseconds(400)))
      return (kind: error?.kind, taken: Instant.now.since(start))
    }
    #expect(results.count == 6)
    for result in results {
      #expect(result.kind == .timeout)
      #expect(result.taken < .seconds(4))
    }
  }

  @Test func aSlowBodyThatKeepsComingHasNoDeadline() throws {
    let server = try RawServer.keeping { connection, _ in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n")
      for _ in 0..<12 {
        connection.pause(.milliseconds(100))
        connection.send("x")
      }
    }
    let sink = RecordingSink()
    _ = try client.get(server.url + "/", into: sink, Call(timeout: .milliseconds(800)))
    #expect(sink.record.count == 12)
  }

  @Test func aRequestThatTheServerDoesNotReadEndsAtTheDeadline() throws {
    let release = Cancellation()
    defer { release.cancel() }
    let server = try RawServer { _ in _ = release.sleep(until: .now + .seconds(30)) }
    let request = HTTPRequest(
      "PUT", server.url + "/", body: [UInt8](repeating: 7, count: 32 << 20))
    let taken = span {
      #expect(client.failure(request, Call(timeout: .milliseconds(500)))?.kind == .timeout)
    }
    #expect(taken < .seconds(5))
  }

  @Test func shutdownFailsWhatWaitsAndWhatComesLater() throws {
    let server = try RawServer { connection in connection.hold() }
    let client = try HTTPClient(HTTPOptions(active: 2))
    let stopper = try Thread(name: "stopper") {
      _ = server.waitForConnections(2)
      client.shutdown()
    }
    let kinds = try inParallel(6) { _ in
      client.failure(HTTPRequest("GET", server.url + "/"))?.kind
    }
    stopper.join()
    #expect(kinds == Array(repeating: .cancelled, count: 6))
    #expect(client.failure(HTTPRequest("GET", server.url + "/"))?.kind == .cancelled)
    client.shutdown()
  }
}
