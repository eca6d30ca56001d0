import BucketStore
import Platform
import TestSupport
import Testing

@Suite struct NetworkTests {
  @Test func theFirstFailureOpensTheBreakerAndAProbeClosesIt() throws {
    let server = try FlakyServer()
    let fixture = try ConnectedFixture(server.url)
    #expect(fixture.ask().error == nil)
    #expect(fixture.network.current == .online)

    server.isDown = true
    #expect(fixture.ask().error?.kind == .connectivity)
    #expect(fixture.network.current == .offline)
    for _ in 0..<20 {
      let refused = fixture.ask()
      #expect(refused.error?.kind == .offline)
      #expect(refused.taken < .milliseconds(100))
    }

    server.isDown = false
    #expect(fixture.waitFor(.online))
    #expect(fixture.ask().error == nil)
    #expect(fixture.changes.map(\.to) == [.offline, .online])
    #expect(fixture.changes.first?.reason.contains("127.0.0.1") == true)
  }

  @Test func offlineCallsSendNothing() throws {
    let server = try FlakyServer()
    let fixture = try ConnectedFixture(server.url, .slow)
    server.isDown = true
    #expect(fixture.ask().error?.kind == .connectivity)
    // The call and the probe that follows a loss at once.
    #expect(server.waitForResets(2))
    for _ in 0..<50 { #expect(fixture.ask().error?.kind == .offline) }
    #expect(server.requests.count == 2)

    server.isDown = false
    fixture.network.probeNow()
    #expect(fixture.waitFor(.online))
    #expect(server.requests.count == 3)
  }

  @Test func probesComeLessOftenTheLongerTheStoreIsAway() throws {
    let server = try FlakyServer()
    let fixture = try ConnectedFixture(server.url)
    server.isDown = true
    _ = fixture.ask()
    _ = Cancellation().sleep(until: .now + .seconds(2))
    // 50, 100, 200, 400, 400 ... ms, each halved at most: 7 to 15 with the call itself.
    let count = server.requests.count
    #expect((4...16).contains(count), "\(count) requests")
  }

  @Test func pausesDoubleUpToTheLongestAndVary() {
    let backoff = Backoff(first: .seconds(1), longest: .seconds(60))
    for (failures, full) in [(0, 1), (1, 1), (2, 2), (5, 16), (7, 60), (1_000_000, 60)] {
      let pauses = (0..<200).map { _ in backoff.pause(afterFailures: failures) }
      #expect(pauses.allSatisfy { $0 <= .seconds(Double(full)) })
      #expect(pauses.allSatisfy { $0 >= .seconds(Double(full) / 2) })
      #expect(Set(pauses).count > 100)
    }
  }

  @Test(arguments: ["404 Not Found", "429 Slow Down", "500 Oops", "503 Busy", "544 Database"])
  func aRefusalIsAnAnswerAndTheNetworkStaysOnline(status: String) throws {
    let server = try FlakyServer { connection, _ in connection.answer(status) }
    let fixture = try ConnectedFixture(server.url)
    #expect(fixture.ask().error != nil)
    #expect(fixture.network.current == .online)
    #expect(fixture.changes.isEmpty)

    server.isDown = true
    _ = fixture.ask()
    server.isDown = false
    #expect(fixture.waitFor(.online))
  }

  @Test func switchedOffNothingIsSentNotEvenProbes() throws {
    let server = try FlakyServer()
    let fixture = try ConnectedFixture(server.url)
    server.isDown = true
    _ = fixture.ask()
    fixture.network.disable()
    #expect(fixture.waitFor(.disabled))
    _ = Cancellation().sleep(until: .now + .milliseconds(100))
    let count = server.requests.count
    for _ in 0..<20 { #expect(fixture.ask().error?.kind == .disabled) }
    fixture.network.probeNow()
    // What goes round the store meets the same gate.
    #expect(throws: StoreError.self) { try fixture.plain.bucketExists("x", Call()) }
    _ = Cancellation().sleep(until: .now + .milliseconds(600))
    #expect(server.requests.count == count)
    #expect(fixture.network.current == .disabled)

    server.isDown = false
    fixture.network.enable()
    #expect(fixture.waitFor(.online))
    #expect(fixture.ask().error == nil)
  }

  @Test func switchingOffStopsWhatIsOnItsWay() throws {
    let server = try RawServer { connection in
      _ = connection.readRequest()
      connection.hold()
    }
    let fixture = try ConnectedFixture(server.url)
    let switcher = try Thread(name: "switcher") {
      _ = server.waitForRequests(1)
      fixture.network.disable()
    }
    let result = fixture.ask()
    switcher.join()
    #expect(result.error?.kind == .disabled)
    #expect(result.taken < .seconds(5))
  }

  @Test func theSessionsRefreshShowsAsRestoring() throws {
    let server = try FlakyServer()
    let fixture = try ConnectedFixture(server.url, .slow)
    fixture.plain.session = .restoring
    #expect(fixture.ask().error == nil)
    #expect(fixture.network.current == .restoring)
    fixture.network.disable()
    #expect(fixture.network.current == .disabled)
    fixture.network.enable()
    #expect(fixture.network.current == .restoring)
    fixture.network.noteSession(.signedIn)
    #expect(fixture.network.current == .online)
    #expect(fixture.changes.map(\.to) == [.restoring, .disabled, .restoring, .online])
  }

  @Test func anObserverMayChangeTheStateItIsToldOf() throws {
    let network = Network(.slow)
    let seen = Locked<[NetworkState]>([])
    network.onChange { [weak network] change in
      seen.withLock { $0.append(change.to) }
      if change.to == .disabled { network?.enable() }
    }
    network.disable()
    #expect(seen.withLock { $0 } == [.disabled, .online])
  }

  @Test func theCallersOwnCancellationStaysACancellation() throws {
    let server = try RawServer { connection in connection.hold() }
    let fixture = try ConnectedFixture(server.url)
    let call = Call()
    let stopper = try Thread(name: "stopper") {
      _ = server.waitForConnections(1)
      call.cancellation.cancel()
    }
    #expect(fixture.ask(call).error?.kind == .cancelled)
    stopper.join()
    #expect(fixture.network.current == .online)
  }
}
