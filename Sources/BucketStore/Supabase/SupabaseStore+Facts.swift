package import Platform

/// Buckets and the facts of objects.
extension SupabaseStore {
  /// Empty for most users though the objects of their buckets are there for them: buckets have
  /// policies of their own, and none by default.
  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    let response = try send("GET", "/bucket", call)
    guard response.status == 200 else {
      throw SupabaseErrors.verdict(on: response, reading: true).error
    }
    let rows = try SupabaseJSON.decode([SupabaseJSON.Bucket].self, from: response)
    return rows.map {
      BucketInfo(
        name: ByteString($0.id), created: $0.created.flatMap { Timestamp(iso8601: $0) })
    }.sorted { $0.name < $1.name }
  }

  /// Asked by the info of an object that is hardly there: the bucket's own call is closed to most
  /// users, and a listing of a missing bucket is an empty one.
  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    do throws(StoreError) {
      try check(bucket: bucket)
    } catch {
      if error.kind == .notFound { return false }
      throw error
    }
    let probe = ObjectName(bucket: bucket, key: ".bucketfs-probe")
    let answer: HTTPResponse
    if let response = try infoResponse(probe, call) {
      answer = response
    } else {
      answer = try firstByteResponse(probe, call)
    }
    if answer.status == 200 || answer.status == 206 { return true }
    let verdict = SupabaseErrors.verdict(on: answer, reading: true)
    if verdict.cause == .bucketMissing { return false }
    if verdict.error.kind == .notFound || verdict.error.kind == .damaged { return true }
    throw verdict.error
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    guard let response = try infoResponse(object, call) else { return try oldInfo(object, call) }
    guard response.status == 200 else {
      throw SupabaseErrors.verdict(on: response, reading: true).error
    }
    let row = try SupabaseJSON.decode(SupabaseJSON.Info.self, from: response)
    guard ByteString(row.name) == object.key else {
      throw StoreError(
        .server, "asked for “\(object)”, the answer speaks of “\(SupabaseErrors.line(row.name))”")
    }
    return ObjectInfo(
      key: object.key, size: row.size.flatMap { $0 < 0 ? nil : $0 },
      tag: row.tag.map(EntityTag.strong), version: row.version,
      modified: row.modified.flatMap { Timestamp(iso8601: $0) }, contentType: row.contentType,
      userMetadata: row.metadata?.texts)
  }

  /// The info call's answer, or nil when the server has no such call.
  ///
  /// A server without it takes the path for that of an object in a bucket named `info`, and says
  /// that the bucket is not found. Whether it means ours is asked by a read.
  private func infoResponse(_ object: ObjectName, _ call: Call) throws(StoreError)
    -> HTTPResponse?
  {
    let known = features.withLock { $0.info }
    if known == false { return nil }
    let response = try send("GET", try path("/object/info/authenticated", object), call)
    let cause =
      response.status < 400
      ? nil : SupabaseErrors.verdict(on: response, reading: true).cause
    let exists: Bool
    switch cause {
    case .routeMissing: exists = false
    case .bucketMissing where known == nil:
      let read = try firstByteResponse(object, call)
      if read.status >= 400 {
        let verdict = SupabaseErrors.verdict(on: read, reading: true)
        if verdict.cause == .bucketMissing { return response }
        guard verdict.error.kind == .notFound || verdict.error.kind == .damaged else {
          throw verdict.error
        }
      }
      exists = false
    case .bucketMissing, .bytesMissing, .uploadMissing, .uploadFinished, .offsetConflict:
      return response
    case nil:
      let isMissing =
        SupabaseErrors.verdict(on: response, reading: true).error.kind == .notFound
      guard response.status == 200 || isMissing else { return response }
      exists = true
    }
    if known != exists { features.withLock { $0.info = exists } }
    return exists ? response : nil
  }

  /// The answer to a read of an object's first byte, without its body.
  private func firstByteResponse(_ object: ObjectName, _ call: Call) throws(StoreError)
    -> HTTPResponse
  {
    try send(
      "GET", try path("/object/authenticated", object), headers: [("Range", "bytes=0-0")], call)
  }
}
