package import Platform

/// Sends HTTP requests: the door between a store and the network.
///
/// `HTTPClient` is the real one; stores see no more of the network than this.
package protocol HTTPTransport: Sendable {
  /// Sends one request and waits for its answer.
  ///
  /// The body of a successful answer (2xx) goes to `sink` when there is one, after `begin`; every
  /// other body is collected into the answer. A success without a sink may hold 64 MiB; of a
  /// refusal's body the first MiB is kept. Redirects are not followed: they are answers.
  /// - Throws: `StoreError` of one of these kinds; every HTTP status is an answer.
  ///   `connectivity` (look-up, connect, TLS, a connection cut), `timeout` (no byte either way for
  ///   the call's time), `damaged` (the body was shorter than announced), `cancelled` (by the call,
  ///   by the sink, or since the transport is shut down), `server` (what came is no HTTP, or
  ///   passes a bound), `refused` (the request may not be sent: it is malformed, or would go over
  ///   an open line).
  func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
    throws(StoreError) -> HTTPResponse
}

/// A request. The target is sent as it is: encoded already, with dot segments kept.
package struct HTTPRequest: Sendable {
  package var method: String
  /// Absolute, percent-encoded.
  package var url: String
  package var headers: [(name: String, value: String)]
  package var body: [UInt8]?
  /// Whether the answer may come compressed; it is expanded before anyone sees it.
  ///
  /// For listings and other JSON. Leave it off for objects and for questions about them: a
  /// compressed answer has another length and a weaker tag.
  package var allowsCompression: Bool

  package init(
    _ method: String, _ url: String, headers: [(name: String, value: String)] = [],
    body: [UInt8]? = nil, allowsCompression: Bool = false
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.allowsCompression = allowsCompression
  }
}

/// An answer: its status, its headers, and its body where no sink took it.
package struct HTTPResponse: Sendable {
  package var status: Int
  /// Names in lower case; of repeated headers the last counts.
  package var headers: [String: String]
  package var body: [UInt8]

  package init(status: Int, headers: [String: String], body: [UInt8]) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// Takes the body of a successful answer as it arrives, on the client's own thread.
///
/// No call begins after `perform` has returned. While one runs, every other transfer waits: it
/// copies the bytes or writes them to a local file, and waits for nothing else.
package protocol HTTPSink: AnyObject, Sendable {
  /// Status and headers are in; `body` is empty. False ends the transfer with `cancelled`.
  func begin(_ response: HTTPResponse) -> Bool
  /// The next bytes, at most 16 KiB. False ends the transfer with `cancelled`.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool
}
