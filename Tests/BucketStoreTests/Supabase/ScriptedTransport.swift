import BucketStore
import Platform
import TestSupport

/// Answers requests by a closure, as the wire would, and remembers them.
final class ScriptedTransport: HTTPTransport {
  private let requests = Locked<[HTTPRequest]>([])
  private let answer: @Sendable (HTTPRequest, Int) -> Result<HTTPResponse, StoreError>

  /// - Parameter answer: given the request and how many came before it.
  init(_ answer: @escaping @Sendable (HTTPRequest, Int) -> Result<HTTPResponse, StoreError>) {
    self.answer = answer
  }

  var sent: [HTTPRequest] { requests.withLock { $0 } }

  func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
    throws(StoreError) -> HTTPResponse
  {
    let index = requests.withLock { requests -> Int in
      requests.append(request)
      return requests.count - 1
    }
    let response = try answer(request, index).get()
    guard let sink, (200..<300).contains(response.status) else { return response }
    var head = response
    head.body = []
    guard sink.begin(head) else { throw StoreError(.cancelled, "declined") }
    for start in stride(from: 0, to: response.body.count, by: 3) {
      let piece = Array(response.body[start..<min(start + 3, response.body.count)])
      guard piece.withUnsafeBytes({ sink.receive($0) }) else {
        throw StoreError(.cancelled, "declined")
      }
    }
    return head
  }
}

extension HTTPRequest {
  func header(_ name: String) -> String? {
    headers.last { $0.name.lowercased() == name.lowercased() }?.value
  }

  var text: String { String(decoding: body ?? [], as: UTF8.self) }
}

extension HTTPResponse {
  /// An answer with a JSON body.
  static func json(_ status: Int, _ text: String) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: ["content-type": "application/json; charset=utf-8"],
      body: Array(text.utf8))
  }

  /// A failure in the server's envelope.
  static func failure(
    _ http: Int, _ statusCode: String, _ error: String, _ message: String, code: String? = nil
  ) -> HTTPResponse {
    let quoted = message.replacing("\"", with: "\\\"")
    let code = code.map { ",\"code\":\"\($0)\"" } ?? ""
    return json(
      http,
      "{\"statusCode\":\"\(statusCode)\",\"error\":\"\(error)\",\"message\":\"\(quoted)\"\(code)}")
  }

  /// An object as the server sends it; nil removes a header.
  static func object(_ body: String, _ status: Int = 200, _ changes: [String: String?] = [:])
    -> HTTPResponse
  {
    var headers = [
      "content-type": "image/jpeg", "content-length": String(body.utf8.count),
      "accept-ranges": "bytes", "etag": "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"",
      "last-modified": "Mon, 27 Apr 2026 10:30:57 GMT", "cache-control": "no-cache",
    ]
    for (name, value) in changes { headers[name] = value }
    return HTTPResponse(status: status, headers: headers, body: Array(body.utf8))
  }
}

extension CollectingSink {
  var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension SupabaseStore {
  /// A store whose key is its identity, over a script.
  static func scripted(
    key: String = "sb_publishable_test", headers: [(name: String, value: String)] = [],
    _ transport: any HTTPTransport
  ) throws -> SupabaseStore {
    let address = try SupabaseAddress("https://ref.supabase.co")
    return SupabaseStore(
      address: address, key: key,
      session: SupabaseSession(address: address, key: key, file: nil, transport: transport),
      transport: transport, headers: headers)
  }
}

/// The kind of error that a call ends with, or nil when it succeeds.
func kind(_ body: () throws(StoreError) -> Void) -> StoreError.Kind? {
  do throws(StoreError) {
    try body()
    return nil
  } catch {
    return error.kind
  }
}
