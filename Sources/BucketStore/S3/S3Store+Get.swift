package import Platform

/// Reading an object.
extension S3Store {
  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> GetOutcome
  {
    var question = Question("GET", request.object)
    if let range = request.range, range.lowerBound >= 0, !range.isEmpty {
      question.headers.append(("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
    }
    if let tag = request.unlessTag {
      question.headers.append(("If-None-Match", EntityTag.unmarked(tag)))
    }
    let download = ObjectDownload(request, into: sink) {
      (response, request) throws(StoreError) in
      guard let tag = Self.tag(in: response),
        response.headers["last-modified"] != nil
      else {
        throw StoreError(
          .server,
          "a success that is not the store's own (HTTP \(response.status)): a page of a proxy?")
      }
      return try ObjectHead(response, to: request, tag: tag)
    }
    let response: HTTPResponse
    do throws(StoreError) {
      response = try send(question, into: download, call)
    } catch {
      throw download.failure ?? error
    }
    if let failure = download.failure { throw failure }
    switch response.status {
    case 200..<300: return .complete(try download.finish())
    case 304:
      guard let tag = request.unlessTag,
        Self.tag(in: response).map({ EntityTag.areSame($0, tag) }) ?? true
      else {
        throw StoreError(.server, "“not modified” was answered to a question that was not asked")
      }
      return .notModified
    default: throw S3Errors.error(on: response, reading: true)
    }
  }
}
