import Platform

/// Uploads in parts (tus 1.0.0 with creation, creation-with-upload, creation-defer-length,
/// termination and expiration): honest statuses, and lines of text for what is refused.
extension Service {
  private static let partType = "application/offset+octet-stream"
  /// How long an upload is kept after it was opened.
  private static let life = Span.seconds(3600)

  func resumableOptions() -> Response {
    Self.resumableAnswer(
      204,
      [
        "Tus-Version": "1.0.0", "Tus-Max-Size": String(world.configuration.sizeLimit),
        "Tus-Extension":
          "creation,creation-with-upload,creation-defer-length,termination,expiration",
      ])
  }

  func beginResumable(_ exchange: Exchange) throws(Failure) -> Response {
    let caller = try resumableCaller(exchange)
    let headers = exchange.request.headers
    let length = headers["Upload-Length"].flatMap { Int($0) }
    guard (length ?? 0) >= 0, (length == nil) == (headers["Upload-Defer-Length"] == "1") else {
      throw .refused(.resumable(400, "Invalid upload-length\n"))
    }
    guard let header = headers["Upload-Metadata"], let pairs = Self.pairs(header),
      let bucket = pairs["bucketName"].map({ String(decoding: $0, as: UTF8.self) }),
      let key = pairs["objectName"].map({ ByteString($0) })
    else { throw .refused(.resumable(400, "Metadata header is required")) }
    guard let settings = world.find(bucket, key)?.bucket else {
      throw .refused(.resumable(404, "Bucket not found"))
    }
    try checkKey(key)
    let limit = min(settings.sizeLimit ?? .max, world.configuration.sizeLimit)
    guard (length ?? 0) <= limit else {
      throw .refused(.resumable(413, "Maximum size exceeded\n"))
    }
    let type = pairs["contentType"].map { String(decoding: $0, as: UTF8.self) }
    if let type { try checkType(type, settings) }
    try checkResumable(exchange, bucket, key, caller)
    let seconds = pairs["cacheControl"].map { String(decoding: $0, as: UTF8.self) }
    let isNumber =
      seconds.map { !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } } ?? false
    let upload = ResumableUpload(
      ResumableUpload.Plan(
        bucket: bucket, key: key, version: Identifier.uuid(), owner: caller.subject,
        type: type ?? "application/octet-stream",
        cacheControl: isNumber ? "max-age=\(seconds ?? "")" : "no-cache",
        userMetadata: UploadSource.metadata(pairs["metadata"]), header: header,
        expires: world.now + Self.life), length: length, in: world)
    world.uploads.withLock { $0[upload.id] = upload }
    var fields = ["Location": location(of: upload, exchange)]
    if headers["Content-Type"] == Self.partType {
      try receive(exchange, upload)
      fields["Upload-Offset"] = String(upload.offset)
    }
    if upload.offset == length { try finish(exchange, upload) } else { expire(upload, &fields) }
    return Self.resumableAnswer(201, fields)
  }

  func resumable(_ exchange: Exchange, _ what: Route.Resuming, _ id: String) throws(Failure)
    -> Response
  {
    let caller = try resumableCaller(exchange)
    let headers = exchange.request.headers
    var offset = 0
    if what == .append {
      guard let given = headers["Upload-Offset"] else {
        throw .refused(.resumable(403, "Upload-Offset header required\n"))
      }
      guard let number = Int(given), number >= 0 else {
        throw .refused(.resumable(400, "Invalid upload-offset\n"))
      }
      offset = number
      guard headers["Content-Type"] == Self.partType else {
        throw .refused(.resumable(403, "Content-Type header required\n"))
      }
    }
    if what != .tell { try checkResumable(exchange, exchange.bucket, exchange.key, caller) }
    guard let upload = world.uploads.withLock({ $0[id] }) else {
      throw .refused(.resumable(404, "The file for this url was not found\n"))
    }
    guard upload.take() else { throw .refused(.resumable(503, "acquiring lock timeout")) }
    defer { upload.release() }
    guard world.now < upload.plan.expires else {
      throw .refused(.resumable(410, "The file for this url no longer exists\n"))
    }
    switch what {
    case .tell: return tell(upload)
    case .discard:
      guard !upload.isFinished else {
        throw .refused(.resumable(400, "Cannot terminate an already completed upload"))
      }
      world.uploads.withLock { $0[id] = nil }
      return Self.resumableAnswer(204, [:])
    case .append: return try append(exchange, upload, at: offset)
    }
  }

  private func tell(_ upload: ResumableUpload) -> Response {
    var fields = [
      "Cache-Control": "no-store", "Upload-Offset": String(upload.offset),
      "Upload-Metadata": upload.plan.header,
    ]
    if let length = upload.length {
      fields["Upload-Length"] = String(length)
    } else {
      fields["Upload-Defer-Length"] = "1"
    }
    if !upload.isFinished { expire(upload, &fields) }
    return Self.resumableAnswer(200, fields)
  }

  private func append(_ exchange: Exchange, _ upload: ResumableUpload, at offset: Int)
    throws(Failure) -> Response
  {
    guard offset == upload.offset else {
      throw .refused(.resumable(409, "Upload-Offset conflict\n"))
    }
    if upload.length == nil,
      let length = exchange.request.headers["Upload-Length"].flatMap({ Int($0) })
    {
      upload.setLength(length)
    }
    if let length = upload.length, let declared = exchange.body.declaredLength,
      offset + declared > length
    {
      throw .refused(.resumable(413, "upload's size exceeded\n"))
    }
    try receive(exchange, upload)
    var fields = ["Upload-Offset": String(upload.offset)]
    if upload.offset == upload.length, !upload.isFinished {
      try finish(exchange, upload)
      fields["Tus-Complete"] = "1"
    } else {
      expire(upload, &fields)
    }
    return Self.resumableAnswer(204, fields)
  }

  /// Takes the bytes of one request; what came before the client went is kept.
  private func receive(_ exchange: Exchange, _ upload: ResumableUpload) throws(Failure) {
    while true {
      while !exchange.body.isReady(within: 100) {
        guard !upload.mustYield else {
          throw .refused(.resumable(400, "Request aborted due to lock acquired"))
        }
      }
      guard let piece = try exchange.body.next() else { return }
      try upload.append(piece)
    }
  }

  /// Makes the object; when that fails, the bytes are gone though the offset still tells of them.
  private func finish(_ exchange: Exchange, _ upload: ResumableUpload) throws(Failure) {
    let (blob, tag) = try upload.finish()
    try disturbCommit(exchange)
    let plan = upload.plan
    let size = upload.offset
    _ = try commit(plan.bucket, plan.key) { now, known in
      ObjectRow(
        id: known?.id ?? Identifier.uuid(), version: plan.version, key: plan.key,
        owner: plan.owner, createdAt: known?.createdAt ?? now, updatedAt: now,
        modifiedAt: world.blobTime(now), size: size, type: plan.type,
        cacheControl: plan.cacheControl, tag: tag, robots: nil,
        userMetadata: plan.userMetadata ?? known?.userMetadata ?? [:], blob: blob)
    }
  }

  /// The token and the version of the protocol; without a token the server says that it is none.
  private func resumableCaller(_ exchange: Exchange) throws(Failure) -> Caller {
    guard exchange.authorization != nil else { throw .refused(.denied("Invalid Compact JWS")) }
    let caller = try self.caller(exchange)
    guard exchange.request.headers["Tus-Resumable"] == "1.0.0" else {
      throw .refused(.resumable(412, "Tus-Resumable Required\n"))
    }
    return caller
  }

  /// The permission test, with the `x-upsert` of this very request.
  private func checkResumable(
    _ exchange: Exchange, _ bucket: String, _ key: ByteString, _ caller: Caller
  ) throws(Failure) {
    guard world.find(bucket, key) != nil else {
      throw .refused(.resumable(404, "Bucket not found"))
    }
    let upsert = exchange.request.headers["x-upsert"] == "true"
    try checkWrite(bucket, key, upsert: upsert, access: access(of: caller))
  }

  private func expire(_ upload: ResumableUpload, _ fields: inout [String: String]) {
    fields["Upload-Expires"] = TimeText.http(upload.plan.expires)
  }

  /// Behind its proxy the hosted service takes every address for one of https.
  private func location(of upload: ResumableUpload, _ exchange: Exchange) -> String {
    let host = exchange.request.headers["Host"] ?? "localhost"
    return
      "\(world.isHosted ? "https" : "http")://\(host)/storage/v1/upload/resumable/\(upload.id)"
  }

  private static func resumableAnswer(_ status: Int, _ fields: [String: String]) -> Response {
    let all = fields.merging(["Tus-Resumable": "1.0.0"]) { _, new in new }
    return Response(
      status: status,
      headers: Headers(all.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }))
  }

  /// `name base64,name base64`; nil when it is not written so.
  private static func pairs(_ header: String) -> [String: [UInt8]]? {
    var pairs: [String: [UInt8]] = [:]
    for item in header.split(separator: ",", omittingEmptySubsequences: false) {
      let words = item.split(separator: " ")
      guard (1...2).contains(words.count),
        let value = words.count == 2 ? Base64.decode(String(words[1])) : []
      else { return nil }
      pairs[String(words[0])] = value
    }
    return pairs
  }
}

extension Refusal {
  /// A refusal of the upload protocol itself.
  static func resumable(_ status: Int, _ text: String) -> Refusal {
    Refusal("", status, "", text, http: status)
  }

  /// As the routes of uploads in parts give it: the true status and the text alone; what the
  /// checks before them refuse comes in the usual envelope.
  func resumableResponse(hidesCode: Bool) -> Response {
    if error == "Unauthorized", message != Refusal.rowLevelSecurity.message {
      return response(hidesCode: hidesCode)
    }
    return Response(
      status: statusCode,
      headers: Headers([
        (name: "Content-Type", value: "text/plain; charset=utf-8"),
        (name: "Tus-Resumable", value: "1.0.0"),
      ]), body: .bytes(Array(message.utf8)))
  }
}
