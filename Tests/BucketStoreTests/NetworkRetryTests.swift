@testable import BucketStore
import Platform
import TestSupport
import Testing

@Suite struct NetworkRetryTests {
  /// A server that fails a number of times before it answers.
  private func server(_ failures: Int, _ status: String) throws -> FlakyServer {
    let left = Locked(failures)
    return try FlakyServer { connection, _ in
      let fails = left.withLock { left in
        left -= 1
        return left >= 0
      }
      connection.answer(fails ? status : "200 OK", "body")
    }
  }

  @Test(arguments: ["429 Later", "503 Busy"])
  func whatMayPassIsTriedAgain(status: String) throws {
    let server = try server(2, status)
    let fixture = try ConnectedFixture(server.url)
    #expect(fixture.ask().error == nil)
    #expect(server.requests.count == 3)
  }

  @Test func whatDoesNotPassEndsAfterThreeTries() throws {
    let server = try server(100, "503 Busy")
    let fixture = try ConnectedFixture(server.url)
    #expect(fixture.ask().error?.kind == .server)
    #expect(server.requests.count == 3)
  }

  @Test func whileEverythingFailsNothingIsTriedAgainUntilSomethingIsAnswered() throws {
    let fails = Locked(true)
    let server = try FlakyServer { connection, _ in
      connection.answer(fails.withLock { $0 } ? "503 Busy" : "200 OK", "body")
    }
    let fixture = try ConnectedFixture(server.url)
    func requests(_ body: () -> StoreError?) -> Int {
      let before = server.requests.count
      #expect((body() != nil) == fails.withLock { $0 })
      return server.requests.count - before
    }
    func read(_ key: String) -> StoreError? { fixture.read(key, into: CollectingSink()) }
    #expect(requests { read("x") } == 3)
    #expect(requests { read("y") } == 3)
    #expect(requests { read("x") } == 1)
    #expect(requests { read("z") } == 1)
    #expect(requests { fixture.ask().error } == 3, "questions fare apart")
    fails.withLock { $0 = false }
    #expect(requests { read("x") } == 1)
    fails.withLock { $0 = true }
    #expect(requests { read("x") } == 3)
  }

  @Test func oneObjectThatIsBrokenLeavesTheOthersTheirTries() throws {
    let failures = Locked(0)
    let server = try FlakyServer { connection, request in
      let fails = failures.withLock { left in
        left -= 1
        return left >= 0
      }
      let isBroken = request.target == "/broken"
      connection.answer(fails || isBroken ? "503 Busy" : "200 OK", "body")
    }
    let fixture = try ConnectedFixture(server.url)
    for _ in 1...3 {
      #expect(fixture.read("broken", into: CollectingSink())?.kind == .server)
    }
    #expect(server.requests.count == 9)
    failures.withLock { $0 = 2 }
    #expect(fixture.read("sound", into: CollectingSink()) == nil)
    #expect(server.requests.count == 12)
  }

  @Test func aStoreThatAnswersOthersMeanwhileIsBusyAndDoesNotFail() {
    let fortune = Fortune()
    func end(_ kind: StoreError.Kind, begun: Instant = .now) {
      for key: ByteString in ["x", "y"] {
        fortune.ended(kind, about: ObjectName(bucket: "b", key: key), begun: begun)
      }
    }
    let begun = Instant.now
    fortune.succeeded()
    end(.throttled, begun: begun)
    #expect(!fortune.isBad)
    end(.timeout)
    #expect(!fortune.isBad, "silence is the network's matter")
    end(.damaged)
    #expect(!fortune.isBad, "others may be whole")
    end(.server)
    #expect(fortune.isBad)
    end(.notFound)
    #expect(!fortune.isBad, "a refusal is an answer")
  }

  @Test func whatCannotPassIsAskedOnce() throws {
    let server = try server(100, "404 Not Found")
    let fixture = try ConnectedFixture(server.url)
    #expect(fixture.ask().error?.kind == .notFound)
    #expect(server.requests.count == 1)
  }

  @Test func aBodyThatHasBegunIsNotBegunAgain() throws {
    let server = try RawServer { connection in
      _ = connection.readRequest()
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    }
    let fixture = try ConnectedFixture(server.url)
    let sink = CollectingSink()
    #expect(fixture.read("object", into: sink)?.kind == .damaged)
    #expect(server.requests.count == 1)
    #expect(fixture.network.current == .online)
  }

  @Test func noTryBeginsBeyondTheCallsTime() throws {
    let server = try server(100, "503 Busy")
    let store = ConnectedStore(
      PlainStore(server.url, try HTTPClient()), network: Network(.slow),
      retry: RetryPolicy(pauses: Backoff(first: .seconds(600), longest: .seconds(600))))
    let error = #expect(throws: StoreError.self) {
      try store.bucketExists("x", Call(timeout: .seconds(60)))
    }
    #expect(error?.kind == .server)
    #expect(server.requests.count == 1)
  }

  @Test func cancellingEndsThePauseBetweenTries() throws {
    let server = try server(100, "503 Busy")
    let client = try HTTPClient()
    let store = ConnectedStore(
      PlainStore(server.url, client), network: Network(.slow),
      retry: RetryPolicy(pauses: Backoff(first: .seconds(20), longest: .seconds(20))))
    let call = Call(timeout: .seconds(60))
    let stopper = try Thread(name: "stopper") {
      _ = server.waitForRequests(1)
      _ = Cancellation().sleep(until: .now + .milliseconds(50))
      call.cancellation.cancel()
    }
    let taken = span {
      let error = #expect(throws: StoreError.self) { try store.bucketExists("x", call) }
      #expect(error?.kind == .cancelled)
    }
    stopper.join()
    #expect(taken < .seconds(5))
    #expect(server.requests.count == 1)
  }
}
