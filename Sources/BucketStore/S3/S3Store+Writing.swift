package import Platform

/// Writing objects whole, and deleting them.
///
/// Whether the server keeps the conditions of a write is found out by the first one: it is sent a
/// second time, with the same bytes and a condition that fails now. Until then, and for good where
/// the server does not keep them, the object is looked at just before.
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
    if known != false, request.condition != .none, response.status == 501 {
      learn(request, isKept: false)
      try compare(request, call)
      response = try send(plain, call)
    }
    try checkStored(response, request, call)
    guard known == nil, request.condition != .none, size <= Self.probeSize else { return }
    question.body = .source(source, 0..<size, progress: { _ in })
    probe(question, request, stored: response, call)
  }

  /// The largest object that is sent a second time to find something out.
  private static let probeSize: Int64 = 64 << 10

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

  /// Asks again for what must be refused now. A server that does it all the same stores the same
  /// bytes once more.
  private func probe(
    _ question: Question, _ request: PutRequest, stored: HTTPResponse, _ call: Call
  ) {
    if case .version(let version) = request.condition,
      stored.headers["etag"].map(EntityTag.strong) == Self.unmarked(version)
    {
      return
    }
    do throws(StoreError) {
      let response = try send(question, call)
      switch response.status {
      case 412: learn(request, isKept: true)
      case 200:
        learn(request, isKept: false)
        Log.info("the store keeps no conditions of writes: two writers may overwrite each other")
      default: break
      }
    } catch {
      // The object is stored; the next write finds out.
      Log.debug("\(request.object): whether conditions are kept is not known yet: \(error)")
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
      guard found?.version == version else {
        throw StoreError(.conflict, "“\(request.object)” was written by another meanwhile")
      }
    case .none: break
    }
  }

  static func conditions(_ request: PutRequest) -> [(name: String, value: String)] {
    switch request.condition {
    case .absent: [("If-None-Match", "*")]
    case .version(let version): [("If-Match", unmarked(version))]
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
        count = try source.read(part, at: offset)
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
