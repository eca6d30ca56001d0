import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

/// Whether addresses of this machine may be changed here.
private let mayChangeLinks = geteuid() == 0 && Subprocess.exists("ip") && canAddAddress()

private func canAddAddress() -> Bool {
  // A machine that forbids it skips the tests below.
  (try? changeAddress("add")) == 0 && (try? changeAddress("del")) == 0
}

private func changeAddress(_ verb: String) throws -> Int32 {
  try Subprocess(["ip", "addr", verb, "127.77.0.1/32", "dev", "lo"], in: "/").wait()
}

@Suite(
  .enabled(if: mayChangeLinks, "needs root, ip(8) and leave to change addresses"), .serialized)
struct NetworkLinkTests {
  @Test func aChangeOfAnAddressIsSeenOnce() throws {
    let seen = Locked(0)
    let watch = try LinkWatch(settle: .milliseconds(300)) {
      seen.withLock { $0 += 1 }
      seen.wakeAll()
    }
    #expect(try changeAddress("add") == 0)
    #expect(try changeAddress("del") == 0)
    #expect(seen.wait(until: .now + .seconds(5)) { $0 > 0 ? true : nil } == true)
    watch.stop()
    let count = seen.withLock { $0 }
    #expect(try changeAddress("add") == 0)
    #expect(try changeAddress("del") == 0)
    _ = Cancellation().sleep(until: .now + .milliseconds(500))
    #expect(seen.withLock { $0 } == count)
  }

  @Test func aChangeOfAnAddressStartsAProbeAtOnce() throws {
    let server = try FlakyServer()
    var options = NetworkOptions.slow
    options.watchesLinks = true
    let fixture = try ConnectedFixture(server.url, options)
    server.isDown = true
    #expect(fixture.ask().error?.kind == .connectivity)
    #expect(server.waitForResets(2))
    _ = Cancellation().sleep(until: .now + .milliseconds(100))
    server.isDown = false
    #expect(fixture.network.current == .offline)
    #expect(try changeAddress("add") == 0)
    #expect(try changeAddress("del") == 0)
    #expect(fixture.waitFor(.online, within: .seconds(5)))
  }

  @Test func aLostLinkIsNoticedBeforeAnyoneAsks() throws {
    let server = try FlakyServer()
    var options = NetworkOptions.slow
    options.watchesLinks = true
    let fixture = try ConnectedFixture(server.url, options)
    #expect(fixture.ask().error == nil)
    server.isDown = true
    #expect(try changeAddress("add") == 0)
    #expect(try changeAddress("del") == 0)
    #expect(fixture.waitFor(.offline, within: .seconds(5)))
    #expect(fixture.ask().error?.kind == .offline)
  }
}
