import Platform

extension Service {
  private static let placeholder: ByteString = ".emptyFolderPlaceholder"

  func upload(_ exchange: Exchange) throws(Failure) -> Response {
    let caller = try self.caller(exchange)
    // PUT always overwrites; POST when the header says exactly `true`.
    let upsert =
      exchange.request.method == "PUT" || exchange.request.headers["x-upsert"] == "true"
    let row = try store(
      exchange, upsert: upsert, owner: caller.subject, access: access(of: caller))
    return Response(json: [
      "Key": .string(exchange.bucket + "/" + row.key.text), "Id": .string(row.id),
    ])
  }

  /// Takes an object in the server's order: bucket, type and size, key, permission, body, commit.
  ///
  /// The permission is tested before the body is read and not again: of two uploads of a new key
  /// without upsert both may pass, and the last to end wins.
  func store(
    _ exchange: Exchange, upsert: Bool, owner: String?, access: Access
  ) throws(Failure) -> ObjectRow {
    let (bucket, key) = (exchange.bucket, exchange.key)
    guard let settings = world.find(bucket, key)?.bucket else { throw .refused(.noSuchBucket) }
    let source = try UploadSource(exchange)
    let isPlaceholder = key.hasSuffix(Self.placeholder)
    if !isPlaceholder { try checkType(source.type, settings) }
    let limit =
      isPlaceholder
      ? 0 : min(settings.sizeLimit ?? world.configuration.sizeLimit, world.configuration.sizeLimit)
    if let size = source.declaredSize, size > limit { throw .refused(.tooLarge) }
    try checkKey(key)
    let robots = try robots(exchange)
    try checkWrite(bucket, key, upsert: upsert, access: access)
    let writer = BlobWriter(world.blobs, tagsByPart: world.isHosted)
    while let piece = try source.next(exchange.body) {
      try writer.append(piece)
      // A chunked body is never measured; a multipart one is cut off at the limit.
      if source.multipart != nil, writer.count > limit { throw .refused(.tooLarge) }
    }
    let (blob, tag) = try writer.finish()
    try disturbCommit(exchange)
    return try commit(bucket, key) { now, known in
      ObjectRow(
        id: known?.id ?? Identifier.uuid(), version: Identifier.uuid(), key: key, owner: owner,
        createdAt: known?.createdAt ?? now, updatedAt: now, modifiedAt: world.blobTime(now),
        size: writer.count, type: source.type, cacheControl: source.cacheControl, tag: tag,
        robots: robots, userMetadata: source.userMetadata ?? [:], blob: blob)
    }
  }

  /// What a fault does to an upload whose bytes are all there.
  func disturbCommit(_ exchange: Exchange) throws(Failure) {
    if let delay = exchange.effect?.commitDelay { exchange.body.pause(delay) }
    if let trouble = exchange.effect?.commitTrouble.flatMap({ Refusal.troubles[$0] }) {
      throw .refused(trouble)
    }
  }

  /// Puts a row in place, over what is there.
  ///
  /// - Throws: the refusal of a foreign key when the bucket has gone meanwhile.
  func commit(
    _ bucket: String, _ key: ByteString, _ make: (Timestamp, ObjectRow?) -> ObjectRow
  ) throws(Failure) -> ObjectRow {
    let row = world.contents.withLock { contents -> ObjectRow? in
      guard contents.buckets[bucket] != nil else { return nil }
      let row = make(contents.now, contents.buckets[bucket]?.rows[key])
      contents.set([row], in: bucket)
      return row
    }
    guard let row else {
      throw .refused(
        Refusal("InvalidRequest", 404, "InvalidRequest", "The related resource does not exist"))
    }
    return row
  }

  /// The permission test of an upload: what the database says to the insert or upsert.
  func checkWrite(
    _ bucket: String, _ key: ByteString, upsert: Bool, access: Access
  ) throws(Failure) {
    let known = world.find(bucket, key)?.row
    guard access.allows(.insert, bucket: bucket, key: key, owner: access.subject) else {
      throw .refused(.rowLevelSecurity)
    }
    guard upsert else {
      // Found by the unique index, so a row that the caller cannot see counts too.
      if known != nil { throw .refused(.alreadyExists) }
      return
    }
    guard access.allows(.select, bucket: bucket, key: key, owner: access.subject) else {
      throw .refused(.rowLevelSecurity)
    }
    if let known {
      guard access.allows(.select, bucket: bucket, key: key, owner: known.owner),
        access.allows(.update, bucket: bucket, key: key, owner: known.owner)
      else { throw .refused(.rowLevelSecurity) }
    }
  }

  /// Types are compared whole, parameters included; `image/*` stands for every image type.
  func checkType(_ type: String, _ settings: Bucket.Settings) throws(Failure) {
    guard let allowed = settings.allowedTypes, !allowed.isEmpty else { return }
    let isAllowed = allowed.contains { rule in
      rule == type || (rule.hasSuffix("/*") && type.hasPrefix(rule.dropLast()))
    }
    guard isAllowed else { throw .refused(.mimeType(type)) }
  }

  private func robots(_ exchange: Exchange) throws(Failure) -> String? {
    guard let value = exchange.request.headers["x-robots-tag"] else { return nil }
    guard !value.isEmpty, value.utf8.allSatisfy({ $0 >= 32 && $0 < 127 }) else {
      throw .refused(
        Refusal(
          "InvalidRequest", 400, "invalid_x_robots_tag",
          "Invalid X-Robots-Tag header: \(value)"))
    }
    return value
  }
}
