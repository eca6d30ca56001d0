package import Platform

/// Reading an object.
extension SupabaseStore {
  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> GetOutcome
  {
    let answer = try download(request, into: sink, call)
    switch answer {
    case .outcome(let outcome): return outcome
    case .failed(let verdict) where verdict.cause == .bytesMissing:
      // The object was being replaced: its new facts name the version to ask for, or it is gone.
      let facts = try info(request.object, call)
      var again = request
      again.fresh = facts.version ?? facts.tag ?? "again"
      let second = try download(again, into: sink, call)
      switch second {
      case .outcome(let outcome): return outcome
      case .failed(let verdict): throw verdict.error
      }
    case .failed(let verdict):
      throw try explained(verdict.error, of: request, call)
    }
  }

  /// How one read ended, with a failed answer's cause.
  enum Answer {
    case outcome(GetOutcome)
    case failed(SupabaseErrors.Verdict)
  }

  func download(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> Answer
  {
    let nonce = request.fresh.map { "?cacheNonce=" + Percent.encode(ByteString($0)) } ?? ""
    // What a proxy compresses has another length and a weak tag.
    var headers = [(name: "Accept-Encoding", value: "identity")]
    if let range = request.range, range.lowerBound >= 0, !range.isEmpty {
      headers.append(("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
    }
    if let tag = request.unlessTag { headers.append(("If-None-Match", EntityTag.strong(tag))) }
    let download = ObjectDownload(request, into: sink, head: SupabaseHead.read)
    let response: HTTPResponse
    do throws(StoreError) {
      response = try send(
        "GET", try path("/object/authenticated", request.object) + nonce, headers: headers,
        into: download, call)
    } catch {
      throw download.failure ?? error
    }
    if let failure = download.failure { throw failure }
    switch response.status {
    case 200..<300: return .outcome(.complete(try download.finish()))
    case 304:
      guard let tag = request.unlessTag,
        response.headers["etag"].map({ EntityTag.strong($0) == EntityTag.strong(tag) }) ?? true
      else {
        throw StoreError(.server, "“not modified” was answered to a question that was not asked")
      }
      return .outcome(.notModified)
    default:
      return .failed(SupabaseErrors.verdict(on: response, reading: true))
    }
  }

  /// The server says 500 where a part begins beyond the object's end (the local one says 416): the
  /// object's facts tell that apart from a failure of the server.
  private func explained(_ error: StoreError, of request: GetRequest, _ call: Call)
    throws(StoreError) -> StoreError
  {
    guard error.kind == .server, let range = request.range else {
      return error
    }
    let facts: ObjectInfo
    do throws(StoreError) {
      facts = try info(request.object, call)
    } catch {
      if error.kind == .notFound || error.kind == .cancelled { throw error }
      return error
    }
    guard let size = facts.size, size <= range.lowerBound else { return error }
    return StoreError(
      .damaged, "the object has \(size) bytes now, and ends before the part that was asked for")
  }
}
