import Platform

extension Service {
  func removeOne(_ exchange: Exchange) throws(Failure) -> Response {
    let (bucket, key) = (exchange.bucket, exchange.key)
    let access = access(of: try caller(exchange))
    _ = try exchange.json(isRequired: false)
    guard let found = world.find(bucket, key) else { throw .refused(.noSuchBucket) }
    guard let row = found.row else { throw .refused(.noSuchKey) }
    guard access.allows(.select, bucket: bucket, key: key, owner: row.owner),
      access.allows(.delete, bucket: bucket, key: key, owner: row.owner)
    else { throw .refused(.denied("Access denied")) }
    world.contents.withLock { $0.remove([key], from: bucket) }
    return Response(json: ["message": "Successfully deleted"])
  }

  /// Exact keys, although the field is called prefixes; what is refused or missing is left out.
  func removeMany(_ exchange: Exchange) throws(Failure) -> Response {
    let body = try exchange.json()
    guard let names = body["prefixes"]?.items?.compactMap(\.text), !names.isEmpty else {
      throw .refused(.schema("body must have required property 'prefixes'"))
    }
    let access = access(of: try caller(exchange))
    let bucket = exchange.bucket
    let removed = world.contents.withLock { contents -> [ObjectRow] in
      var seen: Set<ByteString> = []
      let removed = names.compactMap { name -> ObjectRow? in
        guard let row = contents.buckets[bucket]?.rows[ByteString(name)],
          seen.insert(row.key).inserted,
          access.allows(.select, bucket: bucket, key: row.key, owner: row.owner),
          access.allows(.delete, bucket: bucket, key: row.key, owner: row.owner)
        else { return nil }
        return row
      }
      contents.remove(removed.map(\.key), from: bucket)
      return removed
    }
    return Response(json: .array(removed.map { $0.json(bucket: bucket) }))
  }

  /// What move and copy name in their bodies.
  private struct Names {
    let sourceBucket: String
    let source: ByteString
    let targetBucket: String
    let target: ByteString
    var isSame: Bool { sourceBucket == targetBucket && source == target }
  }

  private func names(_ exchange: Exchange, _ body: JSON) throws(Failure) -> Names {
    let bucket = try exchange.text("bucketId", in: body)
    let source = ByteString(try exchange.text("sourceKey", in: body))
    let target = ByteString(try exchange.text("destinationKey", in: body))
    return Names(
      sourceBucket: bucket, source: source,
      targetBucket: body["destinationBucket"]?.text ?? bucket, target: target)
  }

  func move(_ exchange: Exchange) throws(Failure) -> Response {
    let body = try exchange.json()
    let names = try names(exchange, body)
    let caller = try self.caller(exchange)
    let access = access(of: caller)
    try checkKey(names.target)
    guard let found = world.find(names.sourceBucket, names.source) else {
      throw .refused(.noSuchBucket)
    }
    guard world.find(names.targetBucket, names.target) != nil else {
      throw .refused(.noSuchBucket)
    }
    guard let row = found.row,
      access.allows(
        .select, bucket: names.sourceBucket, key: names.source, owner: row.owner),
      access.allows(.update, bucket: names.sourceBucket, key: names.source, owner: row.owner)
    else { throw .refused(.noSuchKey) }
    let done = Response(json: ["message": "Successfully moved"])
    if names.isSame { return done }
    guard
      access.allows(.update, bucket: names.targetBucket, key: names.target, owner: row.owner),
      access.allows(.select, bucket: names.targetBucket, key: names.target, owner: row.owner)
    else { throw .refused(.rowLevelSecurity) }
    let refusal = world.contents.withLock { contents -> Refusal? in
      guard contents.buckets[names.sourceBucket]?.rows[names.source]?.version == row.version else {
        return .noSuchKey
      }
      guard contents.buckets[names.targetBucket]?.rows[names.target] == nil else {
        return .alreadyExists
      }
      var moved = row
      moved.key = names.target
      moved.version = Identifier.uuid()
      moved.updatedAt = contents.now
      moved.modifiedAt = world.blobTime(contents.now)
      contents.set([moved], in: names.targetBucket)
      contents.remove([names.source], from: names.sourceBucket)
      return nil
    }
    if let refusal { throw .refused(refusal) }
    return done
  }

  func copy(_ exchange: Exchange) throws(Failure) -> Response {
    let body = try exchange.json()
    let names = try names(exchange, body)
    let caller = try self.caller(exchange)
    let access = access(of: caller)
    try checkKey(names.target)
    guard let found = world.find(names.sourceBucket, names.source) else {
      throw .refused(.noSuchBucket)
    }
    guard let row = found.row,
      access.allows(
        .select, bucket: names.sourceBucket, key: names.source, owner: row.owner)
    else { throw .refused(.noSuchKey) }
    guard world.find(names.targetBucket, names.target) != nil else {
      throw .refused(.noSuchBucket)
    }
    try checkWrite(
      names.targetBucket, names.target,
      upsert: exchange.request.headers["x-upsert"] == "true", access: access)
    let copied = try commit(names.targetBucket, names.target) { now, known in
      var copy = row
      copy.id = known?.id ?? Identifier.uuid()
      copy.version = Identifier.uuid()
      copy.key = names.target
      copy.owner = caller.subject
      copy.createdAt = known?.createdAt ?? now
      copy.updatedAt = now
      copy.modifiedAt = world.blobTime(now)
      if body["copyMetadata"] == false {
        copy.userMetadata =
          UploadSource.metadata(exchange.request.headers["x-metadata"].flatMap(Base64.decode))
          ?? [:]
        copy.cacheControl = body["metadata"]?["cacheControl"]?.text ?? copy.cacheControl
        copy.type = body["metadata"]?["mimetype"]?.text ?? copy.type
      }
      return copy
    }
    guard case .object(let members) = copied.json(bucket: names.targetBucket) else {
      preconditionFailure("a row is written as an object")
    }
    return Response(
      json: .object(
        [
          JSON.Member("Id", .string(copied.id)),
          JSON.Member("Key", .string(names.targetBucket + "/" + names.target.text)),
        ] + members))
  }
}
