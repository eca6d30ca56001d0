package import Platform

/// Copies on the server's side.
extension S3Store {
  package func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
  {
    let source = try info(object, call)
    _ = try copy(source, of: object, to: target, overwriting: overwriting, call)
  }

  /// The largest object that S3 copies in one request.
  private static let largestCopy: Int64 = 5 << 30

  /// Copies one version of an object, and no other.
  ///
  /// - Returns: the copy's tag; nil when the server does not say.
  func copy(
    _ source: ObjectInfo, of object: ObjectName, to target: ObjectName, overwriting: Bool,
    _ call: Call
  ) throws(StoreError) -> String? {
    let condition: PutRequest.Condition = overwriting ? .none : .absent
    let request = PutRequest(
      object: target, size: source.size ?? 0,
      contentType: source.contentType ?? "application/octet-stream",
      userMetadata: source.userMetadata ?? [:], condition: condition)
    guard allows(target.key) else {
      throw StoreError(.keyRefused, "the store takes no object named “\(target.key)”")
    }
    // Of the servers that know the condition of a write, not all know that of a copy.
    try compare(request, call)
    if request.size > copyLimit {
      let head = try ask(Question("HEAD", object), call)
      // Copying in parts leaves the object's tags behind, which one request takes along.
      let hasTags = head.headers["x-amz-tagging-count"].map { $0 != "0" } ?? false
      if !hasTags || request.size > Self.largestCopy {
        return try copyInParts(source, of: object, request, Self.described(by: head), call)
      }
    }
    var question = Question("PUT", target)
    question.isReading = false
    question.headers = Self.origin(of: object, source)
    let plain = question
    question.headers += Self.conditions(request)
    question.repetition = overwriting ? .always : .unlessWhole
    let response = try send(
      question, else: plain, .copy, Self.patient(call, bytes: request.size))
    guard response.status == 200 else {
      let error = S3Errors.error(on: response, reading: false)
      guard error.kind == .conflict, !overwriting else { throw error }
      try compare(request, call)
      throw error
    }
    // A failure may come after the head of a success.
    return try Self.expect("CopyObjectResult", in: response)
  }

  /// Sends a request with a condition; without it where the server does not take that call so.
  func send(
    _ question: Question, else plain: Question, _ kind: ConditionalCall, _ call: Call
  ) throws(StoreError) -> HTTPResponse {
    if features.withLock({ $0.unconditional.contains(kind) }) { return try send(plain, call) }
    let response = try send(question, call)
    guard response.status == 501, plain.headers.count < question.headers.count else {
      return response
    }
    features.withLock { _ = $0.unconditional.insert(kind) }
    return try send(plain, call)
  }

  /// A call that lasts as long as the server may be silent while it copies: it says nothing before
  /// it is done.
  static func patient(_ call: Call, bytes: Int64) -> Call {
    var call = call
    call.timeout = call.timeout + .seconds(Double(bytes) / Double(slowest))
    return call
  }

  /// Bytes a second that a server copies at least.
  private static let slowest: Int64 = 16 << 20

  /// The headers that name what is copied: this very version of it.
  static func origin(of object: ObjectName, _ source: ObjectInfo) -> [(
    name: String, value: String
  )] {
    let path = "/" + Percent.encode(object.bucket) + "/" + Percent.encodePath(object.key)
    var headers = [(name: "x-amz-copy-source", value: path)]
    if let tag = source.tag {
      headers.append(("x-amz-copy-source-if-match", EntityTag.unmarked(tag)))
    }
    return headers
  }

  /// The headers of an object that describe it, its type and the user's metadata apart.
  private static func described(by head: HTTPResponse) -> [(name: String, value: String)] {
    ["Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Expires"]
      .compactMap { name in head.headers[name.lowercased()].map { (name, $0) } }
  }

  /// - Returns: the tag that the answer names.
  /// - Throws: `StoreError` when the body of a success is a failure, or none of the store's.
  static func expect(_ root: String, in response: HTTPResponse) throws(StoreError) -> String? {
    var found: String?
    var tag: String?
    let isRead = XMLReader.read(response.body) { path, bytes in
      if path.count == 1 { found = path[0] }
      if path == [root, "ETag"] { tag = String(decoding: bytes, as: UTF8.self) }
    }
    if isRead, found == root { return tag.flatMap(S3PageReader.quoted) }
    if let body = S3Errors.Body(response.body), body.isError {
      throw S3Errors.error(body, status: 500, reading: false)
    }
    throw strange(root)
  }
}
