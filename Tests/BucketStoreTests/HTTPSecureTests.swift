import BucketStore
import Platform
import TestSupport
import Testing

@Suite(
  .enabled(if: Subprocess.exists("openssl"), "openssl(1) makes the certificates"), .serialized)
struct HTTPSecureTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    let made = try Subprocess(
      [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj",
        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
      ], in: scratch.path)
    try #require(made.wait() == 0)
  }

  private var trusting: HTTPOptions { HTTPOptions(authorities: scratch.path("cert.pem")) }

  private func start(_ command: [String], _ port: UInt16) throws -> Subprocess {
    let process = try Subprocess(command, in: scratch.path)
    try #require(Subprocess.waitForPort(port))
    return process
  }

  @Test func certificatesAreVerifiedAgainstAuthorityAndName() throws {
    let port = try Subprocess.freePort()
    let server = try start(
      [
        "openssl", "s_server", "-accept", "\(port)", "-key", "key.pem", "-cert", "cert.pem", "-www",
      ],
      port)
    defer { withExtendedLifetime(server) {} }
    let strict = try HTTPClient()
    let error = strict.failure(HTTPRequest("GET", "https://localhost:\(port)/"))
    #expect(error?.kind == .connectivity)
    #expect(error?.message.contains("certificate") == true)

    let client = try HTTPClient(trusting)
    #expect(try client.get("https://localhost:\(port)/").status == 200)
    let misnamed = client.failure(HTTPRequest("GET", "https://127.0.0.1:\(port)/"))
    #expect(misnamed?.kind == .connectivity)
  }

  @Test func anAuthorityFileThatIsMissingIsToldApart() throws {
    let client = try HTTPClient(HTTPOptions(authorities: scratch.path("none.pem")))
    let port = try Subprocess.freePort()
    let server = try start(
      [
        "openssl", "s_server", "-accept", "\(port)", "-key", "key.pem", "-cert", "cert.pem", "-www",
      ],
      port)
    defer { withExtendedLifetime(server) {} }
    let error = client.failure(HTTPRequest("GET", "https://localhost:\(port)/"))
    #expect(error?.kind == .refused)
    #expect(error?.message.contains("none.pem") == true)
  }

  @Test(
    .enabled(
      if: Subprocess.exists("nghttpd") && HTTPOptions.canShareConnections,
      "needs nghttpd(1) and a libcurl whose HTTP/2 works"))
  func manyTransfersShareOneHTTP2Connection() throws {
    let relay = try startHTTP2()
    let client = try HTTPClient(trusting)
    let request = HTTPRequest("GET", "https://localhost:\(relay.port)/object")
    let counts = try inParallel(40) { _ in
      let sink = RecordingSink(keep: 0)
      return client.failure(request, into: sink) == nil ? sink.record.count : -1
    }
    #expect(counts == Array(repeating: 1_000_000, count: 40))
    #expect(relay.accepted == 1)
  }

  @Test(.enabled(if: Subprocess.exists("nghttpd"), "nghttpd(1) speaks HTTP/2"))
  func anHTTP2ConnectionThatDiedSilentlyIsLeft() throws {
    let relay = try startHTTP2()
    var options = trusting
    options.http2 = true
    let client = try HTTPClient(options)
    let request = HTTPRequest("GET", "https://localhost:\(relay.port)/small")
    for _ in 0..<10 { #expect(client.failure(request) == nil) }
    #expect(relay.accepted == 1)

    relay.freezeOpenConnections()
    #expect(client.failure(request, Call(timeout: .milliseconds(500)))?.kind == .timeout)
    for _ in 0..<10 { #expect(client.failure(request, Call(timeout: .seconds(5))) == nil) }
    #expect(relay.accepted > 1)
  }

  private func startHTTP2() throws -> Relay {
    let port = try Subprocess.freePort()
    try scratch.file("object", [UInt8](repeating: 3, count: 1_000_000))
    try scratch.file("small", [1, 2, 3])
    let server = try start(
      ["nghttpd", "-d", ".", "-a", "127.0.0.1", "\(port)", "key.pem", "cert.pem"], port)
    return try Relay(to: port, keeping: server)
  }
}
