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
    var response: HTTPResponse?
    if !lacks.withLock({ $0.info }) { response = try infoResponse(probe, call) }
    let answer: HTTPResponse
    if let response {
      answer = response
    } else {
      answer = try send(
        "GET", try path("/object/authenticated", probe), headers: [("Range", "bytes=0-0")], call)
    }
    if answer.status == 200 || answer.status == 206 { return true }
    let verdict = SupabaseErrors.verdict(on: answer, reading: true)
    if verdict.cause == .bucketMissing { return false }
    if verdict.error.kind == .notFound || verdict.error.kind == .damaged { return true }
    throw verdict.error
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    if lacks.withLock({ $0.info }) { return try oldInfo(object, call) }
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
  private func infoResponse(_ object: ObjectName, _ call: Call) throws(StoreError)
    -> HTTPResponse?
  {
    let response = try send("GET", try path("/object/info/authenticated", object), call)
    if response.status == 404,
      SupabaseErrors.verdict(on: response, reading: true).cause == .routeMissing
    {
      lacks.withLock { $0.info = true }
      return nil
    }
    return response
  }
}
