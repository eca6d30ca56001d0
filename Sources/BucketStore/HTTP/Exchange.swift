import CCurl
import Glibc
import Platform

/// One request on one easy handle: its settings, its callbacks, its answer. Net thread only.
///
/// libcurl holds an unretained pointer to it as the context of its callbacks; `TransferLoop` keeps
/// it alive until the handle has left the multi handle.
final class Exchange {
  /// Bytes that the body of a success without a sink may hold, and that of a refusal.
  static let limits = (success: 64 << 20, refusal: 1 << 20)

  let transfer: Transfer
  let easy: UnsafeMutableRawPointer
  private let counters: Locked<HTTPCounters>
  private var headers: UnsafeMutablePointer<curl_slist>?
  private let errorText = UnsafeMutableBufferPointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  private var head = HTTPHead()
  private var body: [UInt8] = []
  /// Bytes of the payload that libcurl has taken, now and at most.
  private var sent: Int64 = 0
  private var mostSent: Int64 = 0
  /// What we found ourselves; it counts before libcurl's code.
  private var failure: StoreError?
  /// Enough of a refusal's body is here; the rest is not read.
  private var isCut = false

  init(_ transfer: Transfer, on easy: UnsafeMutableRawPointer, counters: Locked<HTTPCounters>) {
    self.transfer = transfer
    self.easy = easy
    self.counters = counters
    errorText.initialize(repeating: 0)
  }

  deinit {
    curl_slist_free_all(headers)
    errorText.deallocate()
  }

  // MARK: before

  /// Prepares the handle.
  ///
  /// - Throws: `StoreError` when libcurl refuses a setting.
  /// - Parameters:
  ///   - doubt: connections made before are not used.
  ///   - afresh: no kept connection is used at all.
  func prepare(_ options: HTTPOptions, doubt: Instant?, afresh: Bool) throws(StoreError) {
    var handle = EasyHandle(easy)
    handle.setCommon(options, connectTimeout: transfer.timeout)
    if afresh { handle.set(CURLOPT_FRESH_CONNECT, 1) }
    if let doubt { handle.distrust(connectionsBefore: doubt) }
    let request = transfer.request
    handle.set(CURLOPT_URL, request.url)
    // Transfers to one server share its HTTP/2 connection, and wait for it while it is made.
    handle.set(CURLOPT_PIPEWAIT, options.http2 && transfer.target.isEncrypted ? 1 : 0)
    // This machine is never asked through a proxy; for others the environment decides.
    if transfer.target.isLoopback { handle.set(CURLOPT_PROXY, "") }
    setMethod(request, &handle)
    setHeaders(request, &handle)
    setCallbacks(&handle)
    guard handle.failure == CURLE_OK else {
      throw HTTPFailure.error(handle.failure, host: transfer.target.host, detail: "")
    }
  }

  private func setMethod(_ request: HTTPRequest, _ handle: inout EasyHandle) {
    let takesBody = ["POST", "PUT", "PATCH"].contains(request.method)
    if let size = request.payload?.count ?? (takesBody ? 0 : nil) {
      handle.set(CURLOPT_UPLOAD, 1)
      handle.note(bucketfs_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(size)))
    } else if request.method == "HEAD" {
      handle.set(CURLOPT_NOBODY, 1)
    }
    handle.set(CURLOPT_CUSTOMREQUEST, request.method)
  }

  private func setHeaders(_ request: HTTPRequest, _ handle: inout EasyHandle) {
    // An answer may come while the body is on its way; waiting for leave to send costs a round trip.
    var lines = ["Expect:"]
    let names = Set(request.headers.map { $0.name.lowercased() })
    if !names.contains("accept-encoding") {
      if request.allowsCompression {
        handle.set(CURLOPT_ACCEPT_ENCODING, "")
      } else {
        lines.append("Accept-Encoding: identity")
      }
    }
    // libcurl takes "Name:" as "send no such header", and "Name;" as an empty one.
    lines += request.headers.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
    for line in lines {
      guard let longer = curl_slist_append(headers, line) else {
        handle.note(CURLE_OUT_OF_MEMORY)
        return
      }
      headers = longer
    }
    handle.note(bucketfs_set_headers(easy, headers))
  }

  private func setCallbacks(_ handle: inout EasyHandle) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    for option in [CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA] {
      handle.set(option, pointer: context)
    }
    handle.set(CURLOPT_ERRORBUFFER, pointer: UnsafeMutableRawPointer(errorText.baseAddress))
    handle.note(
      bucketfs_set_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        Exchange.of(context)?.receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
          ?? 0
      })
    handle.note(
      bucketfs_set_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
        Exchange.of(context)?.receiveHeader(
          UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
      })
    handle.note(
      bucketfs_set_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
        Exchange.of(context)?.send(
          into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
          ?? Int(CURL_READFUNC_ABORT)
      })
    handle.note(
      bucketfs_set_seek(easy) { context, offset, origin in
        guard origin == 0, let exchange = Exchange.of(context) else {
          return CURL_SEEKFUNC_CANTSEEK
        }
        return exchange.rewind(to: offset)
      })
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> Exchange? {
    context.map { Unmanaged<Exchange>.fromOpaque($0).takeUnretainedValue() }
  }

  // MARK: during

  /// Takes a part of the body; anything but its length ends the transfer.
  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    counters.withLock { $0.bytesIn += Int64(bytes.count) }
    guard head.isComplete else {
      return fail(.server, "sent a body without a head", 0)
    }
    if head.isSuccess, transfer.sink != nil {
      switch transfer.withSink({ $0.receive(bytes) }) {
      case true: return bytes.count
      case false: return fail(.cancelled, "the receiver of the bytes declined", 0)
      default: return 0
      }
    }
    guard transfer.noteProgress() else { return 0 }
    let limit = head.isSuccess ? Self.limits.success : Self.limits.refusal
    let room = limit - body.count
    body.append(contentsOf: bytes.prefix(room))
    guard bytes.count > room else { return bytes.count }
    if head.isSuccess { return fail(.server, "answered with more than \(limit >> 20) MiB", 0) }
    isCut = true
    return 0
  }

  private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
    counters.withLock { $0.bytesIn += Int64(line.count) }
    guard transfer.noteProgress() else { return 0 }
    switch head.add(line) {
    case .more: return line.count
    case .malformed(let reason): return fail(.server, "answered wrongly: \(reason)", 0)
    case .complete: break
    }
    guard head.isSuccess, transfer.sink != nil else { return line.count }
    let response = HTTPResponse(status: head.status, headers: head.headers, body: [])
    switch transfer.withSink({ $0.begin(response) }) {
    case true: return line.count
    case false: return fail(.cancelled, "the receiver of the bytes declined", 0)
    default: return 0
    }
  }

  /// Gives the next part of the request's body.
  private func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let left = (transfer.request.payload?.count ?? 0) - sent
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: left)))
    guard let count = transfer.withCaller({ read(into: part) }) else {
      return Int(CURL_READFUNC_ABORT)
    }
    guard count == part.count else {
      return fail(.damaged, "the bytes to send ended early", Int(CURL_READFUNC_ABORT))
    }
    mostSent = max(mostSent, sent)
    counters.withLock { $0.bytesOut += Int64(count) }
    return count
  }

  /// Reads what comes next of the body, and says how far it is.
  private func read(into part: UnsafeMutableRawBufferPointer) -> Int {
    switch transfer.request.payload {
    case .bytes(let bytes):
      let start = Int(clamping: sent)
      bytes.withUnsafeBytes {
        part.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + part.count]))
      }
      sent += Int64(part.count)
      return part.count
    case .source(let source, let range, let progress):
      guard !part.isEmpty else { return 0 }
      do throws(Errno) {
        let count = try source.read(part, at: range.lowerBound + sent)
        sent += Int64(count)
        progress(sent)
        return count
      } catch {
        Log.warning("the bytes to send cannot be read: \(error)")
        return -1
      }
    case nil: return 0
    }
  }

  private func rewind(to offset: curl_off_t) -> CInt {
    let size = transfer.request.payload?.count ?? 0
    guard 0...size ~= Int64(offset), mayRepeat(size) else { return CURL_SEEKFUNC_FAIL }
    sent = Int64(offset)
    return CURL_SEEKFUNC_OK
  }

  private func mayRepeat(_ size: Int64) -> Bool {
    switch transfer.request.repetition {
    case .always: true
    case .unlessWhole: mostSent < size
    case .never: mostSent == 0
    }
  }

  private func fail(_ kind: StoreError.Kind, _ words: String, _ result: Int) -> Int {
    failure = StoreError(kind, "\(transfer.target.host): \(words)")
    return result
  }

  // MARK: after

  /// What the transfer came to, once libcurl is done with it.
  func outcome(_ code: CURLcode) -> Transfer.Outcome {
    if let failure { return .failed(failure) }
    guard code == CURLE_OK || isCut || isEarlyRefusal(code) else {
      let detail = errorText.baseAddress.map { String(cString: $0) } ?? ""
      return .failed(
        HTTPFailure.error(code, host: transfer.target.host, detail: detail, errno: systemError))
    }
    guard head.isComplete else {
      return .failed(StoreError(.server, "\(transfer.target.host): answered without a head"))
    }
    return .answered(HTTPResponse(status: head.status, headers: head.headers, body: body))
  }

  /// What the system said to the last try to connect.
  private var systemError: Errno? {
    var number = 0
    guard bucketfs_get_long(easy, CURLINFO_OS_ERRNO, &number) == CURLE_OK, number > 0 else {
      return nil
    }
    return Errno(CInt(clamping: number))
  }

  /// Whether a kept connection turned out to be dead under the request's body.
  ///
  /// libcurl sees to that by itself when the request's head cannot be sent, but not later. The
  /// server cannot have taken the request, since it never had the whole of it.
  func diedUnsent(_ code: CURLcode) -> Bool {
    var connections = 0
    guard code == CURLE_SEND_ERROR, head.status == 0, failure == nil,
      transfer.request.repetition != .never || mostSent == 0,
      bucketfs_get_long(easy, CURLINFO_NUM_CONNECTS, &connections) == CURLE_OK
    else { return false }
    return connections == 0
  }

  /// Whether the server refused while the body was on its way, and then closed.
  ///
  /// The whole refusal is here: it says more than the connection that broke under the rest.
  private func isEarlyRefusal(_ code: CURLcode) -> Bool {
    code == CURLE_SEND_ERROR && head.isComplete && !head.isSuccess
      && head.headers["content-length"].flatMap { Int($0) } == body.count
  }
}
