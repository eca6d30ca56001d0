package import Platform

/// Sends HTTP requests: the door between a store and the network.
///
/// `HTTPClient` is the real one; stores see no more of the network than this.
package protocol HTTPTransport: Sendable {
  /// Sends one request and waits for its answer.
  ///
  /// The body of a successful answer (2xx) goes to `sink` when there is one, after `begin`; every
  /// other body is collected into the answer, up to one MiB (64 MiB where there is no sink).
  /// - Throws: `StoreError` of kind `connectivity`, `timeout`, `damaged` (the body was shorter than
  ///   announced) or `cancelled` alone; every HTTP status is an answer.
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

  package init(
    _ method: String, _ url: String, headers: [(name: String, value: String)] = [],
    body: [UInt8]? = nil
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
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
package protocol HTTPSink: AnyObject, Sendable {
  /// Status and headers are in; `body` is empty. False ends the transfer with `cancelled`.
  func begin(_ response: HTTPResponse) -> Bool
  /// The next bytes. False ends the transfer with `cancelled`.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool
}
