import Platform

extension Service {
  func buckets(_ exchange: Exchange) throws(Failure) -> Response {
    let access = access(of: try caller(exchange))
    let query = exchange.route.query
    let search = Bytes.lowered(Array((query["search"] ?? "").utf8))
    var found = world.contents.withLock { Array($0.buckets.values) }.filter { bucket in
      access.allows(.select, bucketRow: bucket.name)
        && (search.isEmpty
          || Bytes.find(search, in: Bytes.lowered(Array(bucket.name.utf8))) != nil)
    }
    let column = query["sortColumn"] ?? "name"
    found.sort { left, right in
      switch column {
      case "created_at" where left.createdAt != right.createdAt: left.createdAt < right.createdAt
      case "updated_at" where left.updatedAt != right.updatedAt: left.updatedAt < right.updatedAt
      default: Bytes.compare(Array(left.name.utf8), Array(right.name.utf8)) < 0
      }
    }
    if query["sortOrder"] == "desc" { found.reverse() }
    let offset = query["offset"].flatMap { Int($0) } ?? 0
    let limit = query["limit"].flatMap { Int($0) } ?? found.count
    return Response(
      json: .array(
        found.dropFirst(max(0, offset)).prefix(max(0, limit)).map { $0.json(showsType: true) }))
  }

  func bucket(_ exchange: Exchange) throws(Failure) -> Response {
    let access = access(of: try caller(exchange))
    return Response(json: try visibleBucket(exchange, access).json(showsType: false))
  }

  func createBucket(_ exchange: Exchange) throws(Failure) -> Response {
    let body = try exchange.json()
    let given = try exchange.text("name", in: body)
    let name = body["id"]?.text ?? given
    let caller = try self.caller(exchange)
    guard KeyRules.allowsNewBucket(name) else { throw .refused(.invalidBucketName) }
    var settings = Bucket.Settings()
    try change(&settings, body)
    guard access(of: caller).allows(.insert, bucketRow: name) else {
      throw .refused(.rowLevelSecurity)
    }
    let isNew = world.contents.withLock { contents in
      guard contents.buckets[name] == nil else { return false }
      contents.setBucket(
        Bucket(name: name, settings: settings, owner: caller.subject, now: contents.now))
      return true
    }
    guard isNew else { throw .refused(.bucketExists) }
    return Response(json: ["name": .string(name)])
  }

  func updateBucket(_ exchange: Exchange) throws(Failure) -> Response {
    let body = try exchange.json()
    let access = access(of: try caller(exchange))
    let known = ["public", "file_size_limit", "allowed_mime_types"]
    guard known.contains(where: { body[$0] != nil }) else {
      throw .refused(.schema("body must NOT have fewer than 1 properties"))
    }
    var bucket = try visibleBucket(exchange, access)
    guard access.allows(.update, bucketRow: bucket.name) else { throw .refused(.noSuchBucket) }
    try change(&bucket.settings, body)
    let settings = bucket.settings
    world.contents.withLock { contents in
      guard var held = contents.buckets.removeValue(forKey: exchange.bucket) else { return }
      held.settings = settings
      held.updatedAt = contents.now
      contents.setBucket(held)
    }
    return Response(json: ["message": "Successfully updated"])
  }

  func emptyBucket(_ exchange: Exchange) throws(Failure) -> Response {
    guard try caller(exchange).role == "service_role" else { throw .refused(.wrongRole) }
    let bucket = exchange.bucket
    let isThere = world.contents.withLock { contents in
      guard let keys = contents.buckets[bucket]?.rows.keys else { return false }
      contents.remove(Array(keys), from: bucket)
      return true
    }
    guard isThere else { throw .refused(.noSuchBucket) }
    return Response(json: [
      "message": "Empty bucket has been queued. Completion may take up to an hour."
    ])
  }

  func deleteBucket(_ exchange: Exchange) throws(Failure) -> Response {
    let access = access(of: try caller(exchange))
    let bucket = try visibleBucket(exchange, access)
    guard access.allows(.delete, bucketRow: bucket.name) else { throw .refused(.noSuchBucket) }
    let isEmpty = world.contents.withLock { contents in
      guard contents.buckets[bucket.name]?.rows.isEmpty ?? true else { return false }
      contents.removeBucket(bucket.name)
      return true
    }
    guard isEmpty else { throw .refused(.bucketNotEmpty) }
    return Response(json: ["message": "Successfully deleted"])
  }

  /// The row of a bucket, which an ordinary user sees only when a policy says so.
  private func visibleBucket(_ exchange: Exchange, _ access: Access) throws(Failure) -> Bucket {
    let name = exchange.bucket
    guard let bucket = world.contents.withLock({ $0.buckets[name] }),
      access.allows(.select, bucketRow: name)
    else { throw .refused(.noSuchBucket) }
    return bucket
  }

  private func change(_ settings: inout Bucket.Settings, _ body: JSON) throws(Failure) {
    if let isPublic = body["public"]?.flag { settings.isPublic = isPublic }
    switch body["file_size_limit"] {
    case nil: break
    case .null?: settings.sizeLimit = nil
    case let limit?:
      guard let bytes = limit.whole.map({ Int($0) }) ?? limit.text.flatMap(Self.bytes) else {
        throw .refused(.schema("body/file_size_limit must be integer or a size"))
      }
      settings.sizeLimit = bytes
    }
    switch body["allowed_mime_types"] {
    case nil: break
    case .null?: settings.allowedTypes = nil
    case let types?: settings.allowedTypes = types.items?.compactMap(\.text)
    }
  }

  /// A size with a decimal unit, as `20MB`.
  private static func bytes(_ text: String) -> Int? {
    let digits = text.prefix { $0.isNumber }
    let units = ["": 1, "B": 1, "KB": 1000, "MB": 1_000_000, "GB": 1_000_000_000]
    guard let number = Int(digits),
      let unit = units[text.dropFirst(digits.count).uppercased().filter { $0 != " " }]
    else { return nil }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: unit)
    return overflow ? nil : bytes
  }
}
