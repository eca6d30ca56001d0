package import Platform

/// Uploads in parts, by the tus protocol 1.0.0 as the server speaks it.
///
/// The permission is tested at every request with the `x-upsert` of that very request, and a new
/// token may be used in between. The server's address of an upload may name a scheme or a host
/// that cannot be reached, so only its last segment is kept, and no token is sent elsewhere.
extension SupabaseStore {
  /// Bytes of each part but the last; the server's documentation asks for exactly this.
  static let partSize: Int64 = 6 << 20

  package func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    try check(writing: request.object)
    try compare(request, call)
    let response = try send(
      "POST", "/upload/resumable",
      headers: Self.resumableHeaders(request) + [
        ("Upload-Length", String(request.size)), ("Upload-Metadata", try Self.metadata(request)),
      ], body: .bytes([]), call)
    guard response.status == 201 else {
      let verdict = SupabaseErrors.resumableVerdict(on: response)
      guard verdict.cause == .routeMissing else { throw verdict.error }
      features.withLock { $0.resumable = false }
      throw StoreError(.unsupported, "this server takes no resumable uploads")
    }
    guard let token = response.headers["location"].flatMap(UploadToken.init(location:)) else {
      throw StoreError(.server, "the store opened an upload and does not say where")
    }
    return token
  }

  package func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try check(writing: request.object)
    guard var offset = try offset(of: token, request, call) else {
      return try finish(token, request, else: Self.forgotten, call)
    }
    var conflicts = 0
    while offset < request.size {
      progress(offset)
      let response = try sendPart(token, request, source, from: offset, progress, call)
      let end = min(offset + Self.partSize, request.size)
      if response.status == 204 || response.status == 200 {
        offset = try Self.reached(response, within: (offset + 1)...end)
        conflicts = 0
        if offset == request.size { return progress(offset) }
        continue
      }
      let verdict = SupabaseErrors.resumableVerdict(on: response)
      switch verdict.cause {
      case .offsetConflict:
        // Another request of ours got further, or less far, than was known here.
        conflicts += 1
        guard conflicts < 3, let next = try self.offset(of: token, request, call) else {
          throw verdict.error
        }
        offset = next
      case .uploadMissing: return try finish(token, request, else: verdict.error, call)
      case _ where verdict.error.kind == .exists:
        return try finish(token, request, else: verdict.error, call)
      default: throw verdict.error
      }
    }
    // Every byte is there, and the last answer was lost, or it was an error: then the server has
    // thrown the bytes away though it goes on to say that it has them.
    try finish(token, request, else: Self.forgotten, call)
  }

  package func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    var headers = Self.resumableHeaders(request)
    for isLast in [false, true] {
      let response = try send("DELETE", try Self.path(of: token), headers: headers, call)
      if (200..<300).contains(response.status) { return }
      let verdict = SupabaseErrors.resumableVerdict(on: response)
      if verdict.cause == .uploadMissing || verdict.cause == .uploadFinished { return }
      // An object that came to be meanwhile forbids it, unless it could be replaced.
      guard verdict.error.kind == .exists, !isLast else { throw verdict.error }
      headers.append(("x-upsert", "true"))
    }
  }

  private func sendPart(
    _ token: UploadToken, _ request: PutRequest, _ source: any PutSource, from offset: Int64,
    _ progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) -> HTTPResponse {
    let end = min(offset + Self.partSize, request.size)
    return try send(
      "PATCH", try Self.path(of: token),
      headers: Self.resumableHeaders(request) + [
        ("Upload-Offset", String(offset)), ("Content-Type", "application/offset+octet-stream"),
      ], body: .source(source, offset..<end) { progress(offset + $0) }, repetition: .never, call)
  }

  /// How much of an upload the server has; nil when it knows no such upload.
  ///
  /// A failed HEAD tells nothing. Any other call tells an expired token, and renews it.
  private func offset(of token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError) -> Int64?
  {
    let path = try Self.path(of: token)
    let headers = [(name: "Tus-Resumable", value: "1.0.0")]
    var response = try send("HEAD", path, headers: headers, call)
    if response.status == 400 {
      _ = try bucketExists(request.object.bucket, call)
      response = try send("HEAD", path, headers: headers, call)
    }
    switch response.status {
    case 200, 204: break
    case 404, 410: return nil
    default:
      throw SupabaseErrors.resumableVerdict(on: response).error
    }
    guard response.headers["upload-length"].map({ $0 == String(request.size) }) ?? true else {
      throw StoreError(.notFound, "the store has an upload of another size")
    }
    return try Self.reached(response, within: 0...max(request.size, 0))
  }

  /// Succeeds when the object is there as this upload, or an earlier one of the same, made it.
  private func finish(
    _ token: UploadToken, _ request: PutRequest, else failure: StoreError, _ call: Call
  ) throws(StoreError) {
    let found: ObjectInfo
    do throws(StoreError) {
      found = try info(request.object, call)
    } catch {
      throw error.kind == .notFound ? failure : error
    }
    let isOurs =
      found.version != nil && found.version == token.version(of: request.object)
      || !request.userMetadata.isEmpty && found.userMetadata == request.userMetadata
    guard found.size == request.size, isOurs else { throw failure }
  }

  private static let forgotten = StoreError(
    .notFound, "the store has forgotten the upload: it must begin again")

  private static func reached(_ response: HTTPResponse, within bounds: ClosedRange<Int64>)
    throws(StoreError) -> Int64
  {
    guard let offset = response.headers["upload-offset"].flatMap({ Int64($0) }),
      bounds.contains(offset)
    else { throw StoreError(.server, "the store does not say how much of the upload it has") }
    return offset
  }

  private static func resumableHeaders(_ request: PutRequest) -> [(name: String, value: String)] {
    let headers = [(name: "Tus-Resumable", value: "1.0.0")]
    return request.overwrites ? headers + [("x-upsert", "true")] : headers
  }

  /// An overwrite without `metadata` would keep the old one.
  private static func metadata(_ request: PutRequest) throws(StoreError) -> String {
    let pairs: [(String, [UInt8])] = [
      ("bucketName", request.object.bucket.bytes), ("objectName", request.object.key.bytes),
      ("contentType", Array(request.bareType.utf8)), ("cacheControl", Array("no-cache".utf8)),
      ("metadata", try SupabaseJSON.encode(request.userMetadata)),
    ]
    return pairs.map { "\($0.0) \(Base64Text.encode($0.1))" }.joined(separator: ",")
  }

  private static func path(of token: UploadToken) throws(StoreError) -> String {
    guard UploadToken.isSegment(token.text) else {
      throw StoreError(.notFound, "the upload's name is none of this store")
    }
    return "/upload/resumable/" + token.text
  }
}

extension UploadToken {
  /// The last segment of the address under which the server keeps an upload.
  init?(location: String) {
    let path = location.prefix { $0 != "?" && $0 != "#" }
    guard let segment = path.split(separator: "/", omittingEmptySubsequences: false).last,
      Self.isSegment(String(segment))
    else { return nil }
    self.init(String(segment))
  }

  /// Whether a text can stand in a URL as one segment, as it is.
  static func isSegment(_ text: String) -> Bool {
    !text.isEmpty && text != "." && text != ".."
      && text.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (97...122).contains(byte | 32) || marks.contains(byte)
      }
  }

  private static let marks = Array("-._~=%+".utf8)

  /// The version that the object will have, where the name tells it.
  ///
  /// It is base64 of `<bucket>/<key>/<version>`; should the server ever name uploads otherwise,
  /// nothing is told.
  func version(of object: ObjectName) -> String? {
    guard let name = Base64Text.decodeURL(text).map({ ByteString($0) }) else { return nil }
    let prefix = object.bucket + "/" + object.key + "/"
    guard name.hasPrefix(prefix), name.count > prefix.count else { return nil }
    return ByteString(name.bytes.dropFirst(prefix.count)).string
  }
}
