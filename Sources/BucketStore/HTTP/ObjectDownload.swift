import Platform

/// Looks at an object's answer before any byte of it is handed on, and counts the bytes.
///
/// Called on the transport's thread, one call at a time; guarded by a lock, which is not held
/// while the sink works.
final class ObjectDownload: HTTPSink {
  /// What an answer's headers say of the object, checked against what was asked.
  typealias HeadReader = @Sendable (HTTPResponse, GetRequest) throws(StoreError) -> ObjectHead

  private struct State {
    var head: ObjectHead?
    var received: Int64 = 0
    var failure: StoreError?
  }

  private let request: GetRequest
  private let sink: any GetSink
  private let readHead: HeadReader
  private let state = Locked(State())

  /// - Parameter head: refuses an answer that is not the store's own.
  init(_ request: GetRequest, into sink: any GetSink, head: @escaping HeadReader) {
    self.request = request
    self.sink = sink
    readHead = head
  }

  /// Why the answer was given up, when it was given up here.
  var failure: StoreError? { state.withLock { $0.failure } }

  func begin(_ response: HTTPResponse) -> Bool {
    let head: ObjectHead
    do throws(StoreError) {
      head = try readHead(response, request)
    } catch {
      return fail(error)
    }
    state.withLock { state in
      state.head = head
      state.received = 0
    }
    return sink.begin(head) || fail(Self.declined)
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let count = Int64(bytes.count)
    let fits = state.withLock { state in
      state.received += count
      return state.head?.range.map { state.received <= Int64($0.count) } ?? true
    }
    guard fits else {
      return fail(StoreError(.damaged, "more bytes came than the answer had announced"))
    }
    return sink.receive(bytes) || fail(Self.declined)
  }

  func goesOn() { sink.goesOn() }

  /// The head, once every byte is in.
  func finish() throws(StoreError) -> ObjectHead {
    let (head, received) = state.withLock { ($0.head, $0.received) }
    guard let head else {
      throw StoreError(.server, "an answer that is not the store's own (no object in it)")
    }
    if let range = head.range, Int64(range.count) != received {
      throw StoreError(.damaged, "\(received) bytes came, \(range.count) were announced")
    }
    return head
  }

  private func fail(_ error: StoreError) -> Bool {
    state.withLock { $0.failure = $0.failure ?? error }
    return false
  }

  private static let declined = StoreError(.cancelled, "stopped by the reader")
}
