import Platform

/// A project's storage over the server's REST interface.
///
/// Reads go through `/object/authenticated/…` and `/object/info/authenticated/…` alone: elsewhere
/// the server takes an expired token for none and answers "bucket not found". HEAD is not used for
/// objects: its failures have no body. Retries are a decorator's; two are the store's own, once each: after
/// the renewal of an expired token, and of an object whose bytes were being replaced.
package final class SupabaseStore: BucketStore {
  /// What is known of a server's calls; nil until an answer has shown it.
  struct Features: Sendable {
    /// The exact listing, version 2.
    var listing: Bool?
    /// The info call.
    var info: Bool?
    /// Resumable uploads.
    var resumable: Bool?
  }

  let address: SupabaseAddress
  let user: SupabaseSession
  let pageSize: Int
  let features = Locked(Features())
  private let key: String
  private let transport: any HTTPTransport
  private let headers: [(name: String, value: String)]

  /// - Parameters:
  ///   - key: the project's key, sent as `apikey` with every call.
  ///   - session: the source of the token; its requests go over their own transport.
  ///   - headers: further headers for every request; one that names a header of ours replaces it.
  ///   - pageSize: the most entries to ask for in one listing request; the server's bound is 1000.
  package init(
    address: SupabaseAddress, key: String, session: SupabaseSession,
    transport: any HTTPTransport, headers: [(name: String, value: String)] = [],
    pageSize: Int = 1000
  ) {
    self.address = address
    self.key = key
    self.transport = transport
    self.headers = headers
    self.pageSize = min(max(pageSize, 1), 1000)
    user = session
  }

  package var capabilities: StoreCapabilities {
    StoreCapabilities(flatListing: features.withLock { $0.listing } ?? true, pageSize: pageSize)
  }

  package var session: SessionState { user.current }

  /// Sends a call with the present token, and once more with a renewed one when it has expired.
  ///
  /// - Parameters:
  ///   - path: below the storage base, percent-encoded, beginning with `/`.
  ///   - sink: takes the body of a success.
  ///   - repetition: whether it may go out again by itself after a connection broke.
  ///   - mayCompress: whether the answer may come compressed.
  /// - Returns: every answer but that of an expired token.
  /// - Throws: `StoreError` of the transport or the session.
  func send(
    _ method: String, _ path: String, headers: [(name: String, value: String)] = [],
    body: HTTPBody? = nil, into sink: (any HTTPSink)? = nil, repetition: HTTPRepetition = .always,
    mayCompress: Bool = false, _ call: Call
  ) throws(StoreError) -> HTTPResponse {
    var request = HTTPRequest(
      method, address.storage + path, headers: headers, allowsCompression: mayCompress)
    request.payload = body
    request.repetition = repetition
    let bearer = try user.bearer(call)
    let response = try perform(request, sink, bearer.token, call)
    guard isExpired(response) else { return response }
    guard bearer.isUser else {
      throw SupabaseSession.keyHasExpired
    }
    let token = try user.renew(after: bearer.token, refused: true, call)
    let second = try perform(request, sink, token, call)
    guard isExpired(second) else { return second }
    throw StoreError(
      .sessionExpired,
      "the server refuses a token that was just renewed: is this device's or its clock wrong?")
  }

  private func isExpired(_ response: HTTPResponse) -> Bool {
    response.status >= 400
      && SupabaseErrors.verdict(on: response, reading: true).error.kind == .sessionExpired
  }

  private func perform(
    _ request: HTTPRequest, _ sink: (any HTTPSink)?, _ token: String?, _ call: Call
  ) throws(StoreError) -> HTTPResponse {
    var request = request
    request.headers =
      SupabaseHeaders.identity(key: key, token: token, extra: headers) + request.headers
    return try transport.perform(request, into: sink, call)
  }

  /// Refuses at once what no bucket is named, and what would name a route of the server.
  ///
  /// - Throws: `StoreError`: `refused` for a name that is one of the server's routes, `notFound`
  ///   for one that is empty, longer than the router takes (100 characters), or not ASCII.
  func check(bucket: ByteString) throws(StoreError) {
    if let name = bucket.string, Self.reserved.contains(name) {
      throw StoreError(
        .refused,
        "a bucket named “\(name)” cannot be used: the server has a route of that name")
    }
    guard (1...100).contains(bucket.count),
      bucket.bytes.allSatisfy({ KeyEncoding.isTaken($0) && $0 != ByteString.slash })
    else { throw StoreError(.notFound, "no bucket can be named “\(bucket)”") }
  }

  private static let reserved: Set<String> = [
    "public", "sign", "list", "list-v2", "info", "upload", "authenticated",
  ]

  /// The path of a call about one object, encoded once.
  func path(_ route: String, _ object: ObjectName) throws(StoreError) -> String {
    try check(bucket: object.bucket)
    guard !object.key.isEmpty else { throw StoreError(.notFound, "an object has a name") }
    return "\(route)/\(Percent.encode(object.bucket))/\(Percent.encodePath(object.key))"
  }
}
