package import Platform

/// Copies and moves on the server's side. S3 has no move: it is a copy that is looked at, and a
/// deletion of what was copied.
extension S3Store {
  package func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
  {
    let source = try info(object, call)
    try copy(source, of: object, to: target, overwriting: overwriting, call)
  }

  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    let target = ObjectName(bucket: object.bucket, key: key)
    let source = try info(object, call)
    if object == target { throw StoreError(.exists, "“\(target)” is the object itself") }
    try copy(source, of: object, to: target, overwriting: false, call)
    let made = try info(target, call)
    guard made.size == source.size, made.userMetadata == source.userMetadata else {
      throw StoreError(.server, "the store's copy of “\(object)” is not the same")
    }
    var question = Question("DELETE", object)
    question.repetition = .unlessWhole
    let isConditional = features.withLock { $0.moreConditions }
    if isConditional, let tag = source.tag {
      question.headers = [("If-Match", Self.unmarked(tag))]
    }
    let response = try sendConditional(question, call)
    if response.status == 412 {
      // Another writer replaced it meanwhile: that stays, and the copy of what was goes.
      try deleteUnseen(target, call)
      throw StoreError(.conflict, "“\(object)” was written by another meanwhile")
    }
    guard response.status == 204 || response.status == 200 || response.status == 404 else {
      throw S3Errors.error(on: response, reading: true)
    }
  }

  /// The largest object that one request copies.
  static let copyLimit: Int64 = 5 << 30

  private func copy(
    _ source: ObjectInfo, of object: ObjectName, to target: ObjectName, overwriting: Bool,
    _ call: Call
  ) throws(StoreError) {
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
    if request.size > Self.copyLimit { return try copyInParts(source, of: object, request, call) }
    var question = Question("PUT", target)
    question.isReading = false
    question.headers = Self.origin(of: object, source)
    if features.withLock({ $0.moreConditions }) { question.headers += Self.conditions(request) }
    question.repetition = overwriting ? .always : .unlessWhole
    let response = try sendConditional(question, call)
    guard response.status == 200 else {
      let error = S3Errors.error(on: response, reading: false)
      guard error.kind == .conflict, !overwriting else { throw error }
      try compare(request, call)
      throw error
    }
    // A failure may come after the head of a success.
    try Self.expect("CopyObjectResult", in: response)
  }

  /// Sends a request with a condition; without it where the server does not have such.
  private func sendConditional(_ question: Question, _ call: Call) throws(StoreError)
    -> HTTPResponse
  {
    let response = try send(question, call)
    let plain = question.headers.filter { !["If-Match", "If-None-Match"].contains($0.name) }
    guard response.status == 501, plain.count < question.headers.count else { return response }
    features.withLock { $0.moreConditions = false }
    var again = question
    again.headers = plain
    return try send(again, call)
  }

  /// The headers that name what is copied: this very version of it.
  static func origin(of object: ObjectName, _ source: ObjectInfo) -> [(
    name: String, value: String
  )] {
    let path = "/" + Percent.encode(object.bucket) + "/" + Percent.encodePath(object.key)
    var headers = [(name: "x-amz-copy-source", value: path)]
    if let tag = source.tag { headers.append(("x-amz-copy-source-if-match", unmarked(tag))) }
    return headers
  }

  /// - Throws: `StoreError` when the body of a success is a failure, or none of the store's.
  static func expect(_ root: String, in response: HTTPResponse) throws(StoreError) {
    var found: String?
    let isRead = XMLReader.read(response.body) { path, _ in
      if path.count == 1 { found = path[0] }
    }
    if isRead, found == root { return }
    if let body = S3Errors.Body(response.body), body.isError {
      throw S3Errors.error(body, status: 500, reading: false)
    }
    throw strange(root)
  }
}
