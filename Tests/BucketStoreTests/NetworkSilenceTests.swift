import BucketStore
import Platform
import TestSupport
import Testing

/// What happens when packets are dropped instead of refused.
@Suite struct NetworkSilenceTests {
  @Test func noCallOutlastsTheDeadlineInABlackHole() throws {
    let server = try FlakyServer()
    let relay = try Relay(to: server.port)
    let fixture = try ConnectedFixture("http://127.0.0.1:\(relay.port)")
    #expect(fixture.ask().error == nil)
    _ = Cancellation().sleep(until: .now + .milliseconds(600))
    relay.freeze(true)

    let timeout = Span.seconds(1)
    let end = Instant.now + .seconds(4)
    let storms = try inParallel(12) { number in
      _ = Cancellation().sleep(until: .now + .milliseconds(Int64(number) * 100))
      var results: [(start: Instant, kind: StoreError.Kind?, taken: Span)] = []
      while Instant.now < end {
        let start = Instant.now
        let result = fixture.ask(Call(timeout: timeout))
        results.append((start, result.error?.kind, result.taken))
        _ = Cancellation().sleep(until: .now + .milliseconds(20))
      }
      return results
    }
    let results = storms.flatMap { $0 }
    #expect(results.allSatisfy { $0.kind == .timeout || $0.kind == .offline })
    #expect(results.filter { $0.kind == .timeout }.count >= 1)
    #expect(results.allSatisfy { $0.taken < .milliseconds(1600) })
    let lost = try #require(
      results.filter { $0.kind == .timeout }.map { $0.start + $0.taken }.min())
    let later = results.filter { $0.start > lost + .milliseconds(50) }
    #expect(later.count > 100)
    #expect(later.allSatisfy { $0.kind == .offline && $0.taken < .milliseconds(100) })
    // Those that waited when the network was lost did not each run to their own deadline.
    let cutShort = results.filter {
      $0.taken > .milliseconds(100) && $0.taken < .milliseconds(900)
    }
    #expect(cutShort.count > 3)
    #expect(cutShort.allSatisfy { $0.start < lost })

    relay.freeze(false)
    fixture.network.probeNow()
    #expect(fixture.waitFor(.online))
    #expect(fixture.ask().error == nil)
  }

  @Test func callsThatWaitInVainTogetherEndAlike() throws {
    let server = try FlakyServer()
    let relay = try Relay(to: server.port)
    let fixture = try ConnectedFixture("http://127.0.0.1:\(relay.port)")
    #expect(fixture.ask().error == nil)
    relay.freeze(true)
    let results = try inParallel(10) { number in
      _ = Cancellation().sleep(until: .now + .milliseconds(Int64(number) * 20))
      return fixture.ask(Call(timeout: .seconds(4)))
    }
    #expect(results.allSatisfy { $0.error?.kind == .timeout }, "\(results)")
    #expect(fixture.network.current == .offline)
    #expect(fixture.ask().error?.kind == .offline)
  }

  @Test func aStoreThatAnswersSomethingIsNotLost() throws {
    let server = try FlakyServer { connection, request in
      if request.target == "/exists" { connection.answer() } else { connection.hold() }
    }
    let fixture = try ConnectedFixture(server.url)
    let errors = try inParallel(40) { number in
      fixture.read("stuck\(number)", into: CollectingSink(), Call(timeout: .seconds(4)))
    }
    #expect(errors.allSatisfy { $0?.kind == .timeout }, "\(errors)")
    #expect(fixture.changes.isEmpty)
    #expect(fixture.network.current == .online)
  }

  @Test func oneSlowObjectDoesNotCostTheNetworkWhileAnotherStreams() throws {
    let server = try FlakyServer { connection, request in
      guard request.target == "/stream" else {
        if request.target == "/exists" { connection.answer() } else { connection.hold() }
        return
      }
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n")
      for _ in 0..<40 {
        connection.pause(.milliseconds(100))
        connection.send("x")
      }
    }
    let fixture = try ConnectedFixture(server.url)
    let stream = try Thread(name: "stream") {
      #expect(fixture.read("stream", into: CollectingSink()) == nil)
    }
    _ = server.waitForRequests(1)
    let error = fixture.read("stuck", into: CollectingSink(), Call(timeout: .seconds(2)))
    stream.join()
    #expect(error?.kind == .timeout)
    #expect(fixture.changes.isEmpty)
  }

  @Test func aResetWhileAnotherTransferStreamsIsNoLoss() throws {
    let server = try FlakyServer { connection, request in
      guard request.target == "/stream" else {
        if request.target == "/exists" { connection.reset() } else { connection.answer() }
        return
      }
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n")
      for _ in 0..<40 {
        connection.pause(.milliseconds(20))
        connection.send("x")
      }
    }
    let fixture = try ConnectedFixture(server.url)
    let sink = CollectingSink()
    let stream = try Thread(name: "stream") {
      #expect(fixture.read("stream", into: sink) == nil)
    }
    _ = server.waitForRequests(1)
    _ = Cancellation().sleep(until: .now + .milliseconds(100))
    #expect(fixture.ask().error?.kind == .connectivity)
    #expect(fixture.network.current == .online)
    stream.join()
    #expect(fixture.ask().error?.kind == .connectivity)
    #expect(fixture.network.current == .offline)
  }
}
