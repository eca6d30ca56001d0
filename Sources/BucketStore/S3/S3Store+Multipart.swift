package import Platform

/// Uploads in parts, which survive a broken connection and a restart.
///
/// The server lists the parts that it has, so nothing but the upload's name need be kept. Each part
/// goes with the MD5 of its bytes.
extension S3Store {
  /// The most parts of one upload.
  private static let mostParts: Int64 = 10_000

  package func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    try compare(request, call)
    return try begin(request, [], call)
  }

  private func begin(
    _ request: PutRequest, _ headers: [(name: String, value: String)], _ call: Call
  ) throws(StoreError) -> UploadToken {
    var question = try Self.question("POST", request)
    question.headers += headers
    question.query = [("uploads", "")]
    question.body = .bytes([])
    let response = try ask(question, call)
    var name = ""
    let isRead = XMLReader.read(response.body) { path, text in
      if path == ["InitiateMultipartUploadResult", "UploadId"] {
        name = String(decoding: text, as: UTF8.self)
      }
    }
    guard isRead, !name.isEmpty else { throw Self.strange("upload") }
    return UploadToken(name)
  }

  package func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    guard var parts = try parts(of: token, request.object, call) else {
      return try finish(request, else: Self.forgotten, call)
    }
    let unit = unit(of: request.size, parts)
    var number = 1
    for start in stride(from: 0, to: max(request.size, 1), by: Int64.Stride(unit)) {
      let range = start..<min(start + unit, request.size)
      progress(range.lowerBound)
      if parts[number]?.size != Int64(range.count) {
        guard
          let tag = try sendPart(token, number, range, request, source, progress, call)
        else { return try finish(request, else: Self.forgotten, call) }
        parts[number] = Part(tag: tag, size: Int64(range.count))
      }
      number += 1
    }
    progress(request.size)
    _ = try complete(token, request, parts.filter { $0.key < number }.mapValues(\.tag), call)
  }

  package func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    var question = Question("DELETE", request.object)
    question.query = [("uploadId", ByteString(token.text))]
    _ = try ask(question, expecting: [200, 204, 404], call)
  }

  // MARK: - Parts

  private struct Part {
    var tag: String
    var size: Int64
  }

  /// Bytes of each part but the last: as an earlier try had them, else such that they are not too
  /// many.
  private func unit(of size: Int64, _ parts: [Int: Part]) -> Int64 {
    if let first = parts[1]?.size, first >= Self.leastPart, first <= size,
      first * Self.mostParts >= size
    {
      return first
    }
    let least = (size + Self.mostParts - 1) / Self.mostParts
    let whole: Int64 = 1 << 20
    return max(partSize, (least + whole - 1) / whole * whole)
  }

  /// The parts that the server has; nil when it knows no such upload.
  private func parts(of token: UploadToken, _ object: ObjectName, _ call: Call)
    throws(StoreError) -> [Int: Part]?
  {
    var parts: [Int: Part] = [:]
    var marker = 0
    while true {
      var question = Question("GET", object)
      question.query = [
        ("uploadId", ByteString(token.text)), ("part-number-marker", ByteString(String(marker))),
      ]
      let response = try send(question, call)
      guard response.status == 200 else {
        let error = S3Errors.error(on: response, reading: true)
        if error.kind == .notFound { return nil }
        throw error
      }
      var (number, tag, size) = (0, "", Int64(-1))
      var (next, isTruncated, isList) = (0, false, false)
      let isRead = XMLReader.read(response.body) { path, bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        switch path.dropFirst() {
        case ["Part", "PartNumber"]: number = Int(text) ?? 0
        case ["Part", "ETag"]: tag = text
        case ["Part", "Size"]: size = Int64(text) ?? -1
        case ["Part"]:
          if number > 0, !tag.isEmpty { parts[number] = Part(tag: tag, size: size) }
          (number, tag, size) = (0, "", -1)
        case ["IsTruncated"]: isTruncated = text == "true"
        case ["NextPartNumberMarker"]: next = Int(text) ?? 0
        case []: isList = path.first?.hasPrefix("ListParts") ?? false
        default: break
        }
      }
      guard isRead, isList else { throw Self.strange("list of parts") }
      guard isTruncated else { return parts }
      guard next > marker else {
        throw StoreError(.server, "the server's list of parts does not go on and does not end")
      }
      marker = next
    }
  }

  /// - Returns: the part's tag; nil when the server knows no such upload.
  private func sendPart(
    _ token: UploadToken, _ number: Int, _ range: Range<Int64>, _ request: PutRequest,
    _ source: any PutSource, _ progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) -> String? {
    var question = Question("PUT", request.object)
    question.isReading = false
    question.query = Self.place(token, number)
    question.headers = [
      ("Content-MD5", try Self.digest(of: source, range, request.object, call))
    ]
    question.body = .source(source, range) { progress(range.lowerBound + $0) }
    let response = try send(question, call)
    if response.status == 200 {
      guard let tag = response.headers["etag"] else { throw Self.strange("tag") }
      return tag
    }
    if S3Errors.Body(response.body)?.code == "NoSuchUpload" { return nil }
    throw S3Errors.error(on: response, reading: false)
  }

  private static func place(_ token: UploadToken, _ number: Int) -> [(
    name: String, value: ByteString
  )] {
    [("partNumber", ByteString(String(number))), ("uploadId", ByteString(token.text))]
  }

  /// Makes the object of the parts. Not every server keeps a condition here, so the object is
  /// looked at just before.
  ///
  /// - Returns: the object's tag; nil when the answer does not tell it.
  private func complete(
    _ token: UploadToken, _ request: PutRequest, _ tags: [Int: String], _ call: Call
  ) throws(StoreError) -> String? {
    try compare(request, call)
    var text = "<CompleteMultipartUpload xmlns=\"\(XMLText.namespace)\">"
    for (number, tag) in tags.sorted(by: { $0.key < $1.key }) {
      let tag = XMLText.escaped(ByteString(tag))
      text += "<Part><PartNumber>\(number)</PartNumber><ETag>\(tag)</ETag></Part>"
    }
    var question = Question("POST", request.object)
    question.isReading = false
    question.query = [("uploadId", ByteString(token.text))]
    question.body = .bytes(Array((text + "</CompleteMultipartUpload>").utf8))
    question.headers = [("Content-Type", "application/xml")]
    question.repetition = .unlessWhole
    let plain = question
    question.headers += Self.conditions(request)
    let response = try send(question, else: plain, .completion, call)
    if S3Errors.Body(response.body)?.code == "NoSuchUpload" {
      try finish(request, else: Self.forgotten, call)
      return nil
    }
    guard response.status == 200 else {
      throw Self.refusal(S3Errors.error(on: response, reading: false), response, request)
    }
    // A failure may come after the head of a success.
    return try Self.expect("CompleteMultipartUploadResult", in: response)
  }

  /// Succeeds when the object is there as this upload, or an earlier one of the same, made it.
  private func finish(_ request: PutRequest, else failure: StoreError, _ call: Call)
    throws(StoreError)
  {
    let found: ObjectInfo
    do throws(StoreError) {
      found = try info(request.object, call)
    } catch {
      throw error.kind == .notFound ? failure : error
    }
    guard found.size == request.size, !request.userMetadata.isEmpty,
      found.userMetadata == request.userMetadata
    else { throw failure }
  }

  private static let forgotten = StoreError(
    .notFound, "the store has forgotten the upload: it must begin again")

  // MARK: - Copies

  /// Copies a large object piece by piece: the server says nothing while it copies, and no answer
  /// may take too long.
  ///
  /// - Parameter headers: what describes the object besides its type and the user's metadata.
  /// - Returns: the copy's tag; nil when the server does not say.
  func copyInParts(
    _ source: ObjectInfo, of object: ObjectName, _ request: PutRequest,
    _ headers: [(name: String, value: String)], _ call: Call
  ) throws(StoreError) -> String? {
    let token = try begin(request, headers, call)
    do throws(StoreError) {
      var tags: [Int: String] = [:]
      let unit = max(copyPart, request.size / Self.mostParts + 1)
      for start in stride(from: 0, to: request.size, by: Int64.Stride(unit)) {
        let number = tags.count + 1
        var question = Question("PUT", request.object)
        question.isReading = false
        question.query = Self.place(token, number)
        let last = min(start + unit, request.size) - 1
        question.headers =
          Self.origin(of: object, source)
          + [("x-amz-copy-source-range", "bytes=\(start)-\(last)")]
        let response = try ask(question, Self.patient(call, bytes: unit))
        guard let tag = try Self.expect("CopyPartResult", in: response) else {
          throw Self.strange("tag")
        }
        tags[number] = tag
      }
      return try complete(token, request, tags, call)
    } catch {
      do throws(StoreError) {
        try abandonUpload(token, request, call)
      } catch let other {
        Log.info("\(request.object): an upload that failed stays open: \(other)")
      }
      throw error
    }
  }
}
