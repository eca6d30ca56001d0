import BucketStore
import Platform

/// Passes requests on, and lets a test answer in the server's place or do something in between.
final class InterceptedTransport: HTTPTransport {
  typealias Answer = @Sendable (HTTPRequest) throws(StoreError) -> HTTPResponse?

  private struct State {
    var sent: [HTTPRequest] = []
    var timeouts: [Span] = []
  }

  private let inner: any HTTPTransport
  private let before: Answer
  private let after: @Sendable (HTTPRequest, inout HTTPResponse) -> Void
  private let state = Locked(State())

  /// - Parameters:
  ///   - before: asked before each request; what it returns is the answer, and nothing is sent.
  ///   - after: sees each answer of the server, and may change it.
  init(
    _ inner: any HTTPTransport, before: @escaping Answer = { _ in nil },
    after: @escaping @Sendable (HTTPRequest, inout HTTPResponse) -> Void = { _, _ in }
  ) {
    self.inner = inner
    self.before = before
    self.after = after
  }

  /// All requests so far, those that the test answered included.
  var sent: [HTTPRequest] { state.withLock { $0.sent } }

  /// How long each of them was given.
  var timeouts: [Span] { state.withLock { $0.timeouts } }

  func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
    throws(StoreError) -> HTTPResponse
  {
    state.withLock { state in
      state.sent.append(request)
      state.timeouts.append(call.timeout)
    }
    if let answer = try before(request) { return answer }
    var response = try inner.perform(request, into: sink, call)
    after(request, &response)
    return response
  }
}

extension HTTPResponse {
  /// A failure as an S3 server words it.
  static func s3(_ status: Int, _ code: String) -> HTTPResponse {
    let text = "<Error><Code>\(code)</Code><Message>no</Message></Error>"
    return HTTPResponse(status: status, headers: [:], body: Array(text.utf8))
  }
}
