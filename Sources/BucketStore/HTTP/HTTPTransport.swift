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
  ///   the call's time; while it waits for its turn, none of any request of
  ///   its kind), `damaged` (the body was shorter than announced), `cancelled` (by the call,
  ///   by the sink, or since the transport is shut down), `server` (what came is no HTTP, or
  ///   passes a bound), `refused` (the request may not be sent: it is malformed, or would go over
  ///   an open line).
  func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
    throws(StoreError) -> HTTPResponse
}

/// A request. The target is sent as it is: encoded already, with dot segments kept.
package struct HTTPRequest: Sendable {
  /// A token of RFC 9110, section 9: `GET`, `PUT` and so on.
  package var method: String
  /// Absolute, percent-encoded.
  package var url: String
  /// In the order in which they are sent.
  package var headers: [(name: String, value: String)]
  /// What is sent with it; nil for no body at all.
  package var payload: HTTPBody?
  /// Whether its payload may go out again by itself, where a kept connection broke unanswered.
  package var repetition = HTTPRepetition.always
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
    payload = body.map { .bytes($0) }
    self.allowsCompression = allowsCompression
  }
}

extension HTTPRequest {
  /// The payload where it is bytes in memory.
  package var body: [UInt8]? {
    if case .bytes(let bytes) = payload { bytes } else { nil }
  }
}

/// When a request may be sent a second time without its sender's knowing.
package enum HTTPRepetition: Sendable {
  /// It does no harm.
  case always
  /// As long as a part of the payload had not gone out: the server cannot have acted upon it.
  case unlessWhole
  /// The server keeps parts of it too.
  case never
}

/// What a request carries.
package enum HTTPBody: Sendable {
  case bytes([UInt8])
  /// A part of a source, read as it is sent.
  ///
  /// Source and progress are called on the client's own thread, and not after `perform` has
  /// returned. A source that fails, or ends early, ends the request with `damaged`. Where a kept
  /// connection turns out to be dead, the part is read from its start again.
  /// - Parameters:
  ///   - range: the bytes of the source to send; its length is announced.
  ///   - progress: told how many bytes of the range were handed to the connection.
  case source(any PutSource, Range<Int64>, progress: @Sendable (Int64) -> Void)

  /// Bytes that it announces.
  package var count: Int64 {
    switch self {
    case .bytes(let bytes): Int64(bytes.count)
    case .source(_, let range, _): Int64(range.count)
    }
  }
}

/// An answer: its status, its headers, and its body where no sink took it.
package struct HTTPResponse: Sendable {
  /// The status code, 100 to 599 (RFC 9110, section 15).
  package var status: Int
  /// Names in lower case; of repeated headers the last counts.
  package var headers: [String: String]
  /// Empty where a sink took it.
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
  /// The call's time has passed without bytes for this sink, and yet there is progress: its request
  /// waits for its turn. Called on the thread that waits in `perform`, at least once in that time.
  func goesOn()
}

extension HTTPSink {
  package func goesOn() {}
}
