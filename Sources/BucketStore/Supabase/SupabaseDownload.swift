import Platform

/// Looks at an object's answer before any byte of it is handed on, and counts the bytes.
///
/// The server sends every object with `ETag` and `Accept-Ranges`, and none as `text/html` (it says
/// `text/plain` then): a success without these is a page of a proxy or a captive portal.
///
/// Called on the transport's thread, one call at a time; guarded by a lock, which is not held
/// while the sink works.
final class SupabaseDownload: HTTPSink {
  private struct State {
    var head: ObjectHead?
    var received: Int64 = 0
    var failure: StoreError?
  }

  private let request: GetRequest
  private let sink: any GetSink
  private let state = Locked(State())

  init(_ request: GetRequest, into sink: any GetSink) {
    self.request = request
    self.sink = sink
  }

  /// Why the answer was given up, when it was given up here.
  var failure: StoreError? { state.withLock { $0.failure } }

  func begin(_ response: HTTPResponse) -> Bool {
    let head: ObjectHead
    do throws(StoreError) {
      head = try Self.head(of: response, to: request)
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

  /// What the answer's headers say of the object, checked against what was asked.
  static func head(of response: HTTPResponse, to request: GetRequest) throws(StoreError)
    -> ObjectHead
  {
    let headers = response.headers
    let type = headers["content-type"]
    guard response.status == 200 || response.status == 206, let tag = headers["etag"],
      headers["accept-ranges"] == "bytes" || headers["content-range"] != nil,
      !(type?.lowercased().contains("text/html") ?? false),
      headers["content-encoding"].map({ $0 == "identity" }) ?? true
    else {
      throw StoreError(
        .server,
        "a success that is not the store's own (HTTP \(response.status)): a page of a proxy?")
    }
    let length = try headers["content-length"].map { (text) throws(StoreError) -> Int64 in
      guard let length = wholeNumber(text) else {
        throw StoreError(.server, "the answer's length is no number")
      }
      return length
    }
    var head = ObjectHead(
      size: length, range: length.map { 0..<$0 }, tag: EntityTag.strong(tag),
      modified: headers["last-modified"].flatMap { Timestamp(httpDate: $0) }, contentType: type)
    guard response.status == 206 else { return head }
    guard let asked = request.range, !asked.isEmpty,
      let (range, size) = headers["content-range"].flatMap(contentRange),
      range.lowerBound == asked.lowerBound,
      range.upperBound == min(asked.upperBound, size ?? asked.upperBound),
      length.map({ $0 == Int64(range.count) }) ?? true
    else {
      throw StoreError(
        .damaged,
        "another part came than was asked for: \(headers["content-range"].map(SupabaseErrors.line) ?? "unnamed")"
      )
    }
    head.range = range
    head.size = size
    return head
  }

  /// `bytes a-b/total`, where the total may be `*`.
  static func contentRange(_ text: String) -> (range: Range<Int64>, size: Int64?)? {
    guard text.hasPrefix("bytes ") else { return nil }
    let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = wholeNumber(ends[0]), let last = wholeNumber(ends[1]),
      first <= last, last < .max
    else { return nil }
    if parts[1] == "*" { return (first..<last + 1, nil) }
    guard let size = wholeNumber(parts[1]), last < size else { return nil }
    return (first..<last + 1, size)
  }

  /// A number of digits alone.
  private static func wholeNumber(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }
}
