import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

/// A look-up that hangs, without leaving this machine: a name server on loopback that never
/// answers, seen by one thread and its children through a mount namespace of their own.
@Suite(.enabled(if: geteuid() == 0, "a mount namespace needs root"))
struct HTTPLookupTests {
  @Test func aLookUpThatHangsHoldsUpNoOtherTransfer() throws {
    let scratch = try Scratch()
    let silence = try SilentNameServer()
    let settings = try scratch.file(
      "resolv.conf",
      Array("nameserver \(silence.address)\noptions timeout:20 attempts:2\n".utf8))
    let made = Locked<(client: HTTPClient?, error: String?)>((nil, nil))
    let maker = try Thread(name: "namespace") {
      do throws(Errno) {
        try Self.useResolverSettings(settings)
        // The net thread and its look-ups inherit the namespace from here.
        let client = try HTTPClient()
        made.withLock { $0.client = client }
      } catch {
        made.withLock { $0.error = error.description }
      }
    }
    maker.join()
    let client = try #require(made.withLock { $0.client }, "\(made.withLock { $0.error } ?? "")")

    let server = try RawServer.keeping { connection, _ in connection.answer() }
    let asking = Cancellation()
    let slowest = Locked(Span.zero)
    let asker = try Thread(name: "asker") {
      while !asking.isCancelled {
        let taken = span {
          #expect(client.failure(HTTPRequest("GET", server.url + "/")) == nil)
        }
        slowest.withLock { $0 = max($0, taken) }
        _ = asking.sleep(until: .now + .milliseconds(10))
      }
    }
    let results = try inParallel(4) { number in
      let start = Instant.now
      let call = Call(timeout: number == 0 ? .seconds(30) : .milliseconds(600))
      let stopper =
        number == 0
        ? try? Thread(name: "stopper") {
          _ = Cancellation().sleep(until: .now + .milliseconds(600))
          call.cancellation.cancel()
        } : nil
      let error = client.failure(HTTPRequest("GET", "https://hangs\(number).example.com/"), call)
      stopper?.join()
      return (kind: error?.kind, taken: Instant.now.since(start))
    }
    // The net thread lets go of them only now.
    _ = Cancellation().sleep(until: .now + .milliseconds(500))
    asking.cancel()
    asker.join()
    #expect(results.map(\.kind) == [.cancelled, .timeout, .timeout, .timeout])
    #expect(results.allSatisfy { $0.taken < .seconds(5) })
    #expect(slowest.withLock { $0 } < .seconds(3))
    #expect(server.requests.count > 20)
  }

  /// Puts another file in the place of /etc/resolv.conf, for the calling thread alone.
  private static func useResolverSettings(_ path: String) throws(Errno) {
    // unshare(2) hides behind _GNU_SOURCE.
    typealias Unshare = @convention(c) (CInt) -> CInt
    guard let symbol = dlsym(nil, "unshare") else { throw .notImplemented }
    let unshare = unsafeBitCast(symbol, to: Unshare.self)
    let cloneNewNamespace: CInt = 0x0002_0000
    let (bind, recursive, privately): (UInt, UInt, UInt) = (0x1000, 0x4000, 0x40000)
    try check { unshare(cloneNewNamespace) }
    try check { mount("none", "/", nil, recursive | privately, nil) }
    try check { mount(path, "/etc/resolv.conf", nil, bind, nil) }
  }
}

/// Takes every question, and answers none.
private final class SilentNameServer: Sendable {
  let address = "127.77.53.53"
  private let socket: File

  init() throws(Errno) {
    let descriptor = try check {
      Glibc.socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    }
    socket = File(owning: descriptor)
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_addr.s_addr = inet_addr(address)
    name.sin_port = UInt16(53).bigEndian
    _ = try withUnsafePointer(to: &name) { (pointer) throws(Errno) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (generic) throws(Errno) in
        try check { bind(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) }
      }
    }
  }
}
