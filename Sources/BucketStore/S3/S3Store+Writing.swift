package import Platform

/// Writing objects whole, and deleting them.
///
/// Every write carries its condition. Whether the server keeps it is known of AWS, and of others as
/// soon as they have turned a write away for it. Until then, and for good where the server does not
/// keep it, the object is looked at just before: trying it out could overwrite another writer's.
extension S3Store: WritableStore {
  package var writing: WritingCapabilities {
    let (absent, matches) = features.withLock { ($0.ifAbsent, $0.ifMatches) }
    return WritingCapabilities(
      atomicCreate: absent ?? false, atomicReplace: matches ?? false, resumable: partSize + 1)
  }

  package func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    let size = max(request.size, 0)
    var question = try Self.question("PUT", request)
    question.headers.append(
      ("Content-MD5", try Self.digest(of: source, 0..<size, request.object, call)))
    question.body = .source(source, 0..<size, progress: progress)
    question.repetition = request.overwrites ? .always : .unlessWhole
    let known = try lookedAt(request, call)
    let plain = question
    if known != false { question.headers += Self.conditions(request) }
    var response = try send(question, call)
    if known != false, request.condition != .none {
      if response.status == 501 {
        learn(request, isKept: false)
        try compare(request, call)
        response = try send(plain, call)
      } else if S3Errors.Body(response.body)?.code == "PreconditionFailed" {
        learn(request, isKept: true)
      }
    }
    try checkStored(response, request, call)
  }

  /// Looks at the object first, where the server may not.
  ///
  /// - Returns: whether the server keeps the request's condition; nil when that is not known.
  private func lookedAt(_ request: PutRequest, _ call: Call) throws(StoreError) -> Bool? {
    let known = features.withLock { features in
      switch request.condition {
      case .absent: features.ifAbsent
      case .version: features.ifMatches
      case .none: true as Bool?
      }
    }
    if known != true { try compare(request, call) }
    return known
  }

  private func learn(_ request: PutRequest, isKept: Bool) {
    features.withLock { features in
      switch request.condition {
      case .absent: features.ifAbsent = isKept
      case .version: features.ifMatches = isKept
      case .none: break
      }
    }
  }

  /// Compares the object that is there with the request's condition; another writer may still come
  /// between.
  func compare(_ request: PutRequest, _ call: Call) throws(StoreError) {
    if request.condition == .none { return }
    let found: ObjectInfo?
    do throws(StoreError) {
      found = try info(request.object, call)
    } catch {
      guard error.kind == .notFound else { throw error }
      found = nil
    }
    switch request.condition {
    case .absent:
      if found != nil { throw StoreError(.exists, "“\(request.object)” is there already") }
    case .version(let version):
      guard found.map({ EntityTag.areSame($0.version, version) }) ?? false else {
        throw StoreError(.conflict, "“\(request.object)” was written by another meanwhile")
      }
    case .none: break
    }
  }

  static func conditions(_ request: PutRequest) -> [(name: String, value: String)] {
    switch request.condition {
    case .absent: [("If-None-Match", "*")]
    case .version(let version): [("If-Match", EntityTag.unmarked(version))]
    case .none: []
    }
  }

  /// The request of a write, with what describes the object.
  static func question(_ method: String, _ request: PutRequest) throws(StoreError) -> Question {
    var question = Question(method, request.object)
    question.isReading = false
    question.headers = [("Content-Type", request.bareType)]
    question.headers += try S3Metadata.headers(request.userMetadata)
    return question
  }

  /// - Throws: `StoreError` of a write that was not done.
  private func checkStored(_ response: HTTPResponse, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    if response.status == 200 {
      guard response.headers["etag"] != nil else { throw Self.strange("tag") }
      return
    }
    let error = Self.refusal(S3Errors.error(on: response, reading: false), response, request)
    // Servers that make missing buckets refuse to do so for most users.
    if error.kind == .refused, try !bucketExists(request.object.bucket, call) {
      throw StoreError(.notFound, "there is no bucket \(request.object.bucket)")
    }
    throw error
  }

  /// What a refusal means under the request's condition.
  static func refusal(_ error: StoreError, _ response: HTTPResponse, _ request: PutRequest)
    -> StoreError
  {
    let code = S3Errors.Body(response.body)?.code
    switch request.condition {
    case .absent where response.status == 412 || code == "PreconditionFailed":
      return StoreError(.exists, "“\(request.object)” is there already")
    case .version where response.status == 412 || code == "NoSuchKey":
      return StoreError(.conflict, "“\(request.object)” was written by another meanwhile")
    default: return error
    }
  }

  /// The MD5 of a part of the bytes, in base64: the server compares it with what arrived.
  ///
  /// - Throws: `StoreError`; `damaged` when they end early or cannot be read, `cancelled`.
  static func digest(
    of source: any PutSource, _ range: Range<Int64>, _ object: ObjectName, _ call: Call
  ) throws(StoreError) -> String {
    var digest = Digest(.md5)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      if call.cancellation.isCancelled { throw StoreError(.cancelled, "cancelled") }
      let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
      let count: Int
      do throws(Errno) {
        count = try source.readAhead(part, at: offset)
      } catch {
        throw StoreError(.damaged, "\(object): its bytes cannot be read: \(error)")
      }
      guard count > 0 else {
        throw StoreError(.damaged, "\(object): the bytes to send ended early")
      }
      digest.update(UnsafeRawBufferPointer(rebasing: part[..<count]))
      offset += Int64(count)
    }
    return Base64Text.encode(digest.bytes())
  }
}
