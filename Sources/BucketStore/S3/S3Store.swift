package import Platform

/// Buckets of a service that speaks the S3 REST interface.
///
/// Requests are signed by SigV4, or not at all where there are no credentials. Retries are a
/// decorator's; a request is sent once more by the store itself where the answer says what was
/// wrong with it: another region, a clock that differs, a token that has been renewed meanwhile.
package final class S3Store: BucketStore {
  /// What is known of a server; nil until an answer has shown it.
  struct Features: Sendable {
    /// Listings without a delimiter are in bytewise order.
    var flatOrder: Bool?
    /// A write may depend on there being no object, or on its tag.
    var ifAbsent: Bool?
    var ifMatches: Bool?
    /// Calls that the server does not take with a condition.
    var unconditional: Set<ConditionalCall> = []
    /// Regions of buckets that are elsewhere than the address says.
    var regions: [ByteString: String] = [:]
    /// How far the server's clock is before ours.
    var skew = Span.zero
  }

  /// Calls other than a plain write that may depend on what is there.
  enum ConditionalCall: Sendable {
    case copy
    case deletion
    case completion
  }

  let address: S3Address
  let pageSize: Int
  let features = Locked(Features())
  let partSize: Int64
  let copyLimit: Int64
  let copyPart: Int64
  private let credentials: @Sendable () -> S3Credentials?
  private let transport: any HTTPTransport
  private let headers: [(name: String, value: String)]

  /// - Parameters:
  ///   - credentials: asked for every request, so that renewed ones are used; nil signs nothing.
  ///   - headers: further headers for every request.
  ///   - pageSize: the most keys to ask for in one listing request; the server's bound is 1000.
  ///   - partSize: bytes of each part of an upload but the last; at least 5 MiB.
  ///   - copyLimit: the most bytes that one request copies on the server's side.
  ///   - copyPart: bytes of each part of a larger copy; at least 5 MiB.
  package init(
    address: S3Address, credentials: @escaping @Sendable () -> S3Credentials?,
    transport: any HTTPTransport, headers: [(name: String, value: String)] = [],
    pageSize: Int = 1000, partSize: Int64 = 8 << 20, copyLimit: Int64 = 256 << 20,
    copyPart: Int64 = 64 << 20
  ) {
    self.address = address
    self.credentials = credentials
    self.transport = transport
    self.headers = headers
    self.pageSize = min(max(pageSize, 1), 1000)
    self.partSize = max(partSize, Self.leastPart)
    self.copyLimit = copyLimit
    self.copyPart = max(copyPart, Self.leastPart)
    // AWS keeps them since 2024.
    if address.endpoint == nil {
      features.withLock { ($0.ifAbsent, $0.ifMatches) = (true, true) }
    }
  }

  /// S3 refuses smaller parts, the last one apart.
  static let leastPart: Int64 = 5 << 20

  package var capabilities: StoreCapabilities {
    StoreCapabilities(
      flatListing: features.withLock { $0.flatOrder } ?? true, pageSize: pageSize)
  }

  package var session: SessionState { .keyOnly }

  /// One request, before it is addressed and signed.
  struct Question {
    var method: String
    /// nil asks about the service.
    var bucket: ByteString?
    /// nil asks about the bucket.
    var key: ByteString?
    var query: [(name: String, value: ByteString)] = []
    var headers: [(name: String, value: String)] = []
    var body: HTTPBody?
    var repetition = HTTPRepetition.always
    /// Whether a name that cannot exist is "not found" in it.
    var isReading = true

    init(_ method: String, _ object: ObjectName) {
      self.method = method
      bucket = object.bucket
      key = object.key
    }

    init(_ method: String, bucket: ByteString?) {
      self.method = method
      self.bucket = bucket
    }
  }

  /// Sends a request; once more where the first answer says what to do better.
  ///
  /// - Throws: `StoreError` of the transport; every answer is returned.
  func send(_ question: Question, into sink: (any HTTPSink)? = nil, _ call: Call)
    throws(StoreError) -> HTTPResponse
  {
    try check(question)
    let used = credentials()
    let response = try perform(question, used, sink, call)
    guard response.status >= 300, response.status != 304, response.status != 404,
      improve(question, after: response, used)
    else { return response }
    return try perform(question, credentials(), sink, call)
  }

  /// As `send`, where only these statuses are an answer.
  ///
  /// - Throws: `StoreError` of the transport, or of what the server says.
  func ask(
    _ question: Question, expecting statuses: Set<Int> = [200], into sink: (any HTTPSink)? = nil,
    _ call: Call
  ) throws(StoreError) -> HTTPResponse {
    let response = try send(question, into: sink, call)
    guard statuses.contains(response.status) else {
      throw S3Errors.error(on: response, reading: question.isReading)
    }
    return response
  }

  private func perform(
    _ question: Question, _ credentials: S3Credentials?, _ sink: (any HTTPSink)?, _ call: Call
  ) throws(StoreError) -> HTTPResponse {
    let (region, skew) = features.withLock { features in
      (question.bucket.flatMap { features.regions[$0] } ?? address.region, features.skew)
    }
    let target = address.target(bucket: question.bucket, key: question.key, region: region)
    let query = S3Signature.query(question.query)
    var request = HTTPRequest(
      question.method, target.url + (query.isEmpty ? "" : "?" + query),
      headers: headers + question.headers)
    request.payload = question.body
    request.repetition = question.repetition
    if let credentials {
      let now = Timestamp.now + skew
      let payload =
        switch question.body {
        case .bytes(let bytes): Digest.hex(.sha256, of: bytes)
        case .source: S3Signature.unsigned
        case nil: Digest.hex(.sha256, of: [])
        }
      request.headers += [
        ("x-amz-content-sha256", payload), ("x-amz-date", S3Signature.time(now)),
      ]
      if let token = credentials.sessionToken {
        request.headers.append(("x-amz-security-token", token))
      }
      let signed = request.headers.filter { Self.isSigned($0.name.lowercased()) }
      let authorization = S3Signature(credentials, region: region).authorization(
        question.method, path: target.path, query: query,
        headers: [("host", target.host)] + signed, payload: payload, at: now)
      request.headers.append(("Authorization", authorization))
    }
    return try transport.perform(request, into: sink, call)
  }

  /// AWS asks for the media type and for all headers of its own; the others here say what is stored,
  /// read or compared, and nobody on the way may change that. A proxy may change any other header.
  private static func isSigned(_ name: String) -> Bool {
    name.hasPrefix("x-amz-")
      || ["content-type", "content-md5", "if-match", "if-none-match", "range"].contains(name)
  }

  /// Learns from a refusal what was wrong with the request.
  ///
  /// - Returns: whether it is worth sending again.
  private func improve(
    _ question: Question, after response: HTTPResponse, _ used: S3Credentials?
  ) -> Bool {
    let body = S3Errors.Body(response.body)
    if let bucket = question.bucket,
      let region = response.headers["x-amz-bucket-region"] ?? body?.region,
      [301, 307, 400].contains(response.status),
      (try? S3Address(endpoint: nil, region: region)) != nil
    {
      // A region that cannot be one is no help; the refusal stands then.
      return features.withLock { features in
        guard region != features.regions[bucket] ?? address.region else { return false }
        features.regions[bucket] = region
        return true
      }
    }
    switch body?.code {
    case "RequestTimeTooSkewed":
      guard let time = response.headers["date"].flatMap({ Timestamp(httpDate: $0) }) else {
        return false
      }
      let skew = time.since(.now)
      Log.warning("this device's clock and the store's differ by \(Int(skew.seconds)) seconds")
      features.withLock { $0.skew = skew }
      return true
    case "ExpiredToken", "InvalidToken", "InvalidAccessKeyId": return credentials() != used
    default: return false
    }
  }

  /// Refuses at once what cannot be asked: names that would be another's on the way.
  ///
  /// - Throws: `StoreError`; `notFound`, or `keyRefused` where something is written.
  private func check(_ question: Question) throws(StoreError) {
    let kind: StoreError.Kind = question.isReading ? .notFound : .keyRefused
    if let bucket = question.bucket, !S3Address.isBucket(bucket) {
      throw StoreError(kind, "no bucket can be named “\(bucket)”")
    }
    if let key = question.key, !allows(key) {
      throw StoreError(kind, "the store has no object named “\(key)”")
    }
  }

  /// A key is at most 1024 bytes of UTF-8. A segment `.` or `..` would lead elsewhere to many
  /// proxies and servers.
  package func allows(_ key: ByteString) -> Bool {
    (1...1024).contains(key.count) && key.string != nil
      && !key.bytes.contains(0)
      && key.split(at: ByteString.slash).allSatisfy { $0 != "." && $0 != ".." }
  }
}
