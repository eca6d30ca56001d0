import BucketStore
import Platform
import TestSupport

/// Counts what a client hands on, and keeps it while it is small.
final class RecordingSink: HTTPSink {
  struct Record {
    var responses: [HTTPResponse] = []
    var bytes: [UInt8] = []
    var count = 0
    var largest = 0
  }

  private let state = Locked(Record())
  private let accept: @Sendable (Int) -> Bool
  private let keep: Int

  /// - Parameter accept: asked with the count of bytes so far; false declines the next ones.
  init(keep: Int = 1 << 20, accept: @escaping @Sendable (Int) -> Bool = { _ in true }) {
    self.keep = keep
    self.accept = accept
  }

  var record: Record { state.withLock { $0 } }

  /// Waits until so many bytes have arrived.
  func waitForBytes(_ count: Int, within span: Span = .seconds(10)) -> Bool {
    state.wait(until: .now + span) { $0.count >= count ? true : nil } ?? false
  }

  func begin(_ response: HTTPResponse) -> Bool {
    state.withLock { $0.responses.append(response) }
    return accept(0)
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let count = state.withLock { state in
      state.count += bytes.count
      state.largest = max(state.largest, bytes.count)
      if state.bytes.count < keep { state.bytes += bytes }
      return state.count
    }
    state.wakeAll()
    return accept(count)
  }
}

extension HTTPClient {
  /// The kind of failure of a request, or nil when it was answered.
  func failure(
    _ request: HTTPRequest, into sink: (any HTTPSink)? = nil, _ call: Call = Call()
  ) -> StoreError? {
    do throws(StoreError) {
      _ = try perform(request, into: sink, call)
      return nil
    } catch {
      return error
    }
  }

  func get(_ url: String, into sink: (any HTTPSink)? = nil, _ call: Call = Call())
    throws(StoreError) -> HTTPResponse
  {
    try perform(HTTPRequest("GET", url), into: sink, call)
  }
}

extension RawServer {
  /// Answers every request on kept connections.
  static func keeping(_ answer: @escaping @Sendable (RawConnection, RawRequest) -> Void)
    throws(Errno) -> RawServer
  {
    try RawServer { connection in
      while let request = connection.readRequest() { answer(connection, request) }
    }
  }
}
