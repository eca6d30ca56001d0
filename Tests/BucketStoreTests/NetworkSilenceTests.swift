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

    let timeout = Span.seconds(10)
    let begun = Instant.now
    // When the first one gave up, and how many began two seconds after that.
    let loss = Locked((at: Instant?.none, later: 0))
    let storms = try inParallel(12) { number in
      // The last one begins when the store has been silent for half of the first one's time.
      _ = Cancellation().sleep(until: begun + .milliseconds(Int64(number) * 400))
      var results: [(start: Instant, kind: StoreError.Kind?, taken: Span)] = []
      while Instant.now < begun + .seconds(60), loss.withLock({ $0.later <= 12 }) {
        let start = Instant.now
        let result = fixture.ask(Call(timeout: timeout))
        results.append((start, result.error?.kind, result.taken))
        loss.withLock { loss in
          if result.error?.kind == .timeout {
            loss.at = min(loss.at ?? .now, start + result.taken)
          } else if let lost = loss.at, start > lost + .seconds(2) {
            loss.later += 1
          }
        }
        _ = Cancellation().sleep(until: .now + .milliseconds(20))
      }
      return results
    }
    let results = storms.flatMap { $0 }
    #expect(results.allSatisfy { $0.kind == .timeout || $0.kind == .offline })
    #expect(results.filter { $0.kind == .timeout }.count >= 1)
    let lost = try #require(
      results.filter { $0.kind == .timeout }.map { $0.start + $0.taken }.min())
    let waited = results.filter { $0.start < lost }
    #expect(waited.count >= 4)
    #expect(waited.allSatisfy { $0.taken < timeout + .seconds(5) }, "\(waited)")
    // Those that came late and waited when the network was lost end with it, before their time.
    let late = waited.filter { $0.start > begun + .seconds(3) }
    #expect(late.allSatisfy { $0.taken < timeout }, "\(late)")
    let later = results.filter { $0.start > lost + .seconds(2) }
    #expect(later.count > 12)
    #expect(
      later.allSatisfy { $0.kind == .offline && $0.taken.nanoseconds < timeout.nanoseconds / 2 })

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
    let reason = try #require(fixture.network.reason)
    #expect(!reason.contains("offline"), "what the network told them is no reason: \(reason)")
    #expect(fixture.ask().error?.kind == .offline)
  }

  @Test func whoStoodInLineBesideThemHadNoAnswerInTimeEither() throws {
    let server = try FlakyServer()
    let fixture = try ConnectedFixture(server.url, .slow)
    server.isDown = true
    #expect(fixture.ask().error?.kind == .connectivity)
    #expect(fixture.network.current == .offline)
    let timeout = Span.seconds(10)
    let early = Pulse(Instant(nanoseconds: Instant.now.nanoseconds - 8_000_000_000))
    #expect(fixture.ask(Call(timeout: timeout, pulse: early)).error?.kind == .timeout)
    #expect(fixture.ask(Call(timeout: timeout, pulse: Pulse())).error?.kind == .offline)
    #expect(fixture.ask(Call(timeout: timeout)).error?.kind == .offline)
  }

  @Test func whoComesWithNoTimeLeftEndsAtOnceAndProvesNothing() throws {
    let server = try FlakyServer { connection, request in
      if request.target == "/exists" { connection.answer() } else { connection.hold() }
    }
    let fixture = try ConnectedFixture(server.url, .slow)
    let early = Pulse(Instant(nanoseconds: Instant.now.nanoseconds - 3_600_000_000_000))
    let start = Instant.now
    let call = Call(timeout: .seconds(600), pulse: early)
    #expect(fixture.read("stuck", into: CollectingSink(), call)?.kind == .timeout)
    #expect(Instant.now.since(start) < .seconds(300))
    #expect(fixture.network.current == .online)
  }

  @Test func anAnswerGivesACallItsTimeAnew() throws {
    let server = try FlakyServer()
    let fixture = try ConnectedFixture(server.url)
    let start = Instant.now
    let pulse = Pulse(Instant(nanoseconds: start.nanoseconds - 500_000_000_000))
    #expect(fixture.ask(Call(timeout: .seconds(600), pulse: pulse)).error == nil)
    #expect(pulse.last > start)
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
