import BucketStore
import Platform
import TestSupport
import Testing

@Suite struct HTTPTargetTests {
  let client: HTTPClient

  init() throws {
    client = try HTTPClient()
  }

  @Test(arguments: [
    "http://example.com/", "http://127.0.0.1.example.com/", "http://127.1/", "http://0177.0.0.1/",
    "http://127.0.0.256/", "http://localhost.example.com/", "http://[::2]/", "http://10.0.0.1:80/",
    "http://0.0.0.0/",
  ])
  func plainHTTPToAnotherHostIsRefused(url: String) {
    let error = client.failure(HTTPRequest("GET", url))
    #expect(error?.kind == .refused)
    #expect(error?.message.contains("insecure") == true)
    #expect(client.counters.requests == 0)
  }

  @Test(arguments: [
    "http://user@127.0.0.1/", "http://127.0.0.1\\@example.com/", "http:///path", "http:/x",
    "ftp://127.0.0.1/", "file:///etc/passwd", "http://127.0.0.1:99999/", "http://127.0.0.1:/",
    "http://127.0.0.1/a b", "http://127.0.0.1/a\r\nX: y", "http://127.0.0.1/ü", "",
    "http://127.0.0.1/#f", "http://[::1", "HTTP://127.0.0.1/", "http://%31/",
  ])
  func aURLThatCouldBeReadInTwoWaysIsRefused(url: String) {
    #expect(client.failure(HTTPRequest("GET", url))?.kind == .refused)
    #expect(client.counters.requests == 0)
  }

  @Test func noHeaderOrMethodCarriesALineBreak() {
    let url = "http://127.0.0.1:9/"
    for header in [
      ("X-A", "b\r\nX-C: d"), ("X-A", "b\nc"), ("X\r\nB", "c"), ("X A", "b"), ("", ""),
    ] {
      #expect(client.failure(HTTPRequest("GET", url, headers: [header]))?.kind == .refused)
    }
    #expect(client.failure(HTTPRequest("GET", url, headers: [("X-A", "b\u{0}")]))?.kind == .refused)
    #expect(client.failure(HTTPRequest("GET / HTTP/1.1\r\nX: y", url))?.kind == .refused)
    #expect(client.counters.requests == 0)
  }

  @Test func thisMachineIsAskedOverPlainHTTPByAllItsNames() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    for host in ["127.0.0.1", "localhost", "LocalHost"] {
      #expect(try client.get("http://\(host):\(server.port)/").status == 200)
    }
  }

  @Test func insecureLetsPlainHTTPGoElsewhere() throws {
    let open = try HTTPClient(HTTPOptions(insecure: true))
    // An address of the documentation's range (RFC 5737): the request starts, and gets nowhere.
    let error = open.failure(
      HTTPRequest("GET", "http://192.0.2.1/"), Call(timeout: .milliseconds(200)))
    #expect(error?.kind == .timeout || error?.kind == .connectivity)
    #expect(open.counters.requests == 1)
  }
}
