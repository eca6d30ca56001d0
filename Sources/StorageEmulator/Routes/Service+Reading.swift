import Platform

extension Service {
  /// The row that a reading route names, in the server's order: bucket, key, row.
  func find(_ exchange: Exchange, _ reader: Route.Reader) throws(Failure) -> ObjectRow {
    let caller: Caller
    switch reader {
    case .authenticated: caller = try self.caller(exchange)
    case .lenient: caller = lenientCaller(exchange)
    case .anyone: caller = .nobody
    case .signed:
      try checkSignedToken(exchange)
      return try row(exchange, access: nil)
    }
    guard let bucket = world.find(exchange.bucket, exchange.key)?.bucket,
      bucket.isPublic || caller.isAuthenticated
    else {
      throw .refused(.noSuchBucket)
    }
    return try row(exchange, access: bucket.isPublic ? nil : access(of: caller))
  }

  /// - Parameter access: the rights that must show the row; nil for none asked.
  private func row(_ exchange: Exchange, access: Access?) throws(Failure) -> ObjectRow {
    guard let found = world.find(exchange.bucket, exchange.key) else {
      throw .refused(.noSuchBucket)
    }
    try checkKey(exchange.key)
    guard let row = found.row,
      access?.allows(.select, bucket: exchange.bucket, key: row.key, owner: row.owner) ?? true
    else {
      throw .refused(.noSuchKey)
    }
    return row
  }

  func checkKey(_ key: ByteString) throws(Failure) {
    guard KeyRules.allowsKey(key, refusesDots: !world.isHosted) else {
      throw .refused(.invalidKey(key.text))
    }
  }

  func download(_ exchange: Exchange, _ reader: Route.Reader) throws(Failure) -> Response {
    let row = try edgeRow(exchange, reader)
    var headers = readHeaders(row, exchange, reader)
    if exchange.isHead, !isSigned(reader) {
      // Answered from the row alone: no conditions, no ranges.
      if let condition = exchange.request.headers["If-None-Match"], condition != row.tag {
        headers["Cache-Control"] = row.cacheControl + ", must-revalidate"
      }
      var response = Response(headers: headers)
      response.claimedLength = row.size
      response.sendsBody = false
      return response
    }
    if let response = notModified(row, exchange, headers) { return response }
    if exchange.request.headers["If-None-Match"] != nil, let control = headers["Cache-Control"] {
      headers["Cache-Control"] = control + ", stale-while-revalidate=30"
    }
    let whole = 0..<row.size
    switch try range(exchange.request.headers["Range"], of: row.size) {
    case nil: return Response(headers: headers, body: .blob(row.blob, whole))
    case let part?:
      headers["Content-Range"] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(row.size)"
      return Response(status: 206, headers: headers, body: .blob(row.blob, part))
    }
  }

  func info(_ exchange: Exchange, _ reader: Route.Reader) throws(Failure) -> Response {
    let row = try find(exchange, reader)
    var response = Response(json: [
      "id": .string(row.id), "name": .string(row.key.text), "version": .string(row.version),
      "bucket_id": .string(exchange.bucket), "size": .integer(Int64(row.size)),
      "content_type": .string(row.type), "cache_control": .string(row.cacheControl),
      "etag": .string(row.tag), "metadata": row.userMetadata ?? .null,
      "last_modified": .string(TimeText.iso(row.updatedAt)),
      "created_at": .string(TimeText.iso(row.createdAt)),
    ])
    response.headers["ETag"] = row.tag
    response.headers["Last-Modified"] = TimeText.http(row.modifiedAt)
    response.headers["Cache-Control"] = row.cacheControl
    if exchange.isHead { response.claimedLength = row.size }
    return response
  }

  private func isSigned(_ reader: Route.Reader) -> Bool {
    guard case .signed = reader else { return false }
    return true
  }

  private func readHeaders(
    _ row: ObjectRow, _ exchange: Exchange, _ reader: Route.Reader
  ) -> Headers {
    let type = row.type.lowercased().contains("text/html") ? "text/plain" : row.type
    var headers = Headers([
      (name: "Accept-Ranges", value: "bytes"), (name: "Content-Type", value: type),
      (name: "ETag", value: row.tag),
      (name: "Last-Modified", value: TimeText.http(row.modifiedAt)),
    ])
    if isSigned(reader) {
      headers["Expires"] = signedExpiry(exchange).map(TimeText.http)
    } else {
      headers["Cache-Control"] = row.cacheControl
    }
    headers["X-Robots-Tag"] = row.robots ?? "none"
    if let name = exchange.route.query["download"] {
      let encoded = Percent.encode(ByteString(name))
      headers["Content-Disposition"] =
        name.isEmpty
        ? "attachment;" : "attachment; filename=\(encoded); filename*=UTF-8''\(encoded)"
    }
    if world.isHosted { headers["x-smart-cdn"] = "true" }
    return headers
  }

  /// The 304 of this profile when the caller's copy is current; nil otherwise.
  private func notModified(
    _ row: ObjectRow, _ exchange: Exchange, _ headers: Headers
  ) -> Response? {
    let condition = exchange.request.headers["If-None-Match"]
    let since = exchange.request.headers["If-Modified-Since"].flatMap(TimeText.readHTTP)
    if world.isHosted {
      let isCurrent =
        if let condition {
          condition.split(separator: ",").contains { item in
            let tag = item.drop { $0 == " " }
            return tag == "*" || tag == row.tag || tag == "W/" + row.tag
          }
        } else {
          since.map { !($0 < row.modifiedAt) } ?? false
        }
      guard isCurrent else { return nil }
      var response = Response(status: 304)
      response.sendsBody = false
      return response
    }
    guard condition == row.tag || (since.map { !($0 < row.modifiedAt) } ?? false) else {
      return nil
    }
    var full = Headers()
    for name in ["ETag", "Last-Modified", "Cache-Control"] { full[name] = headers[name] }
    var response = Response(status: 304, headers: full)
    response.sendsBody = false
    response.claimedLength = 0
    return response
  }

  /// The part that a Range header asks for; nil for the whole object.
  ///
  /// The hosted blob store's 416 comes out as 500, and what it does not understand is passed over;
  /// the file backend answers 416 to all of it.
  private func range(_ header: String?, of size: Int) throws(Failure) -> Range<Int>? {
    guard let header else { return nil }
    switch RangeHeader(header) {
    case .unreadable:
      if world.isHosted { return nil }
      throw .refused(.invalidRange)
    case .one(let first, let last):
      guard let range = RangeHeader.resolve(first, last, size: size) else {
        throw .refused(world.isHosted ? .internalError : .invalidRange)
      }
      return range
    }
  }
}

/// A Range header of one range (RFC 9110 14.2); more than one counts as unreadable.
enum RangeHeader {
  case one(first: Int?, last: Int?)
  case unreadable

  init(_ text: String) {
    self = .unreadable
    guard text.hasPrefix("bytes=") else { return }
    let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return }
    let first = Int(parts[0])
    let last = Int(parts[1])
    guard first != nil || parts[0].isEmpty, last != nil || parts[1].isEmpty,
      first != nil || last != nil, first.map({ $0 >= 0 }) ?? true, last.map({ $0 >= 0 }) ?? true
    else { return }
    if let first, let last, last < first { return }
    self = .one(first: first, last: last)
  }

  /// - Returns: nil when no byte of the object is in the range.
  static func resolve(_ first: Int?, _ last: Int?, size: Int) -> Range<Int>? {
    if let first {
      guard first < size else { return nil }
      return first..<(min(last ?? size - 1, size - 1) + 1)
    }
    guard let last, last > 0, size > 0 else { return nil }
    return max(0, size - last)..<size
  }
}
