package import Platform

/// Writing objects whole, and changing them on the server's side.
///
/// The server has no conditional write: of two creators both may succeed and the last one's bytes
/// stay, and a version is compared just before. A plain overwrite erases the user's metadata unless
/// it is sent again, so it always is. Downloads go through caches between, which may keep a copy
/// for as long as the object's own Cache-Control says: `no-cache`.
extension SupabaseStore: WritableStore {
  package var writing: WritingCapabilities {
    let hasUploads = features.withLock { $0.resumable } ?? true
    return WritingCapabilities(
      atomicCreate: false, atomicReplace: false, resumable: hasUploads ? Self.partSize + 1 : nil)
  }

  /// The server's alphabet, and a length that its blob store takes.
  ///
  /// The blob store's own keys have 1024 bytes at most, for the project (20), the bucket (100), the
  /// key, a version (36), the slashes between, and a suffix (5). A segment `.` or `..`, and an
  /// empty one before the end, would be another object's key to some proxies.
  package func allows(_ key: ByteString) -> Bool {
    guard (1...Self.longestKey).contains(key.count), key.bytes.allSatisfy(KeyEncoding.isTaken)
    else { return false }
    let segments = key.split(at: ByteString.slash)
    return segments.enumerated().allSatisfy { index, segment in
      segment != "." && segment != ".."
        && (!segment.isEmpty || index > 0 && index == segments.count - 1)
    }
  }

  private static let longestKey = 860

  package func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try check(writing: request.object)
    let metadata = Base64Text.encode(try SupabaseJSON.encode(request.userMetadata))
    guard metadata.utf8.count <= Self.longestMetadata else {
      throw StoreError(.tooLarge, "the object's metadata is too long for a request's headers")
    }
    try compare(request, call)
    var headers = [
      (name: "Content-Type", value: request.bareType), ("Cache-Control", "no-cache"),
      ("x-metadata", metadata),
    ]
    if request.overwrites { headers.append(("x-upsert", "true")) }
    let response = try send(
      "POST", try path("/object", request.object), headers: headers,
      body: .source(source, 0..<max(request.size, 0), progress: progress),
      repetition: request.overwrites ? .always : .unlessWhole, call)
    try Self.expect(SupabaseJSON.Stored.self, of: response)
  }

  /// Bytes of `x-metadata`; the server takes 16 KiB of headers, of which the token has its part.
  private static let longestMetadata = 8 << 10

  package func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    let response = try send("DELETE", try path("/object", object), repetition: .unlessWhole, call)
    // A name that the server refuses is one that no object has.
    try Self.expect(SupabaseJSON.Done.self, of: response, reading: true)
  }

  /// In requests of 500: the server's own batch, and well below its bounds.
  package func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    try check(bucket: bucket)
    // A key is text: nothing has a name that is none.
    let names = keys.compactMap(\.string)
    var deleted: Set<ByteString> = []
    for start in stride(from: 0, to: names.count, by: Self.batch) {
      let part = Array(names[start..<min(start + Self.batch, names.count)])
      let response = try send(
        "DELETE", "/object/" + Percent.encode(bucket), headers: SupabaseHeaders.json,
        body: .bytes(try SupabaseJSON.encode(SupabaseJSON.RemoveBody(prefixes: part))), call)
      let rows = try Self.expect([SupabaseJSON.Removed].self, of: response)
      deleted.formUnion(rows.map { ByteString($0.name) })
    }
    return deleted.intersection(keys)
  }

  private static let batch = 500

  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    let target = ObjectName(bucket: object.bucket, key: key)
    let body = try transfer(object, to: target)
    let response = try send(
      "POST", "/object/move", headers: SupabaseHeaders.json,
      body: .bytes(try SupabaseJSON.encode(body)), repetition: .unlessWhole, call)
    try Self.expect(SupabaseJSON.Done.self, of: response)
  }

  package func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
  {
    let body = try transfer(object, to: target)
    let upsert = overwriting ? [(name: "x-upsert", value: "true")] : []
    let response = try send(
      "POST", "/object/copy", headers: SupabaseHeaders.json + upsert,
      body: .bytes(try SupabaseJSON.encode(body)), repetition: overwriting ? .always : .unlessWhole,
      call)
    try Self.expect(SupabaseJSON.Stored.self, of: response)
  }

  /// What a move and a copy name.
  private func transfer(_ object: ObjectName, to target: ObjectName) throws(StoreError)
    -> SupabaseJSON.TransferBody
  {
    try check(bucket: object.bucket)
    try check(writing: target)
    guard let source = object.key.string else {
      throw StoreError(.notFound, "the store has no “\(object)”: keys are text")
    }
    return SupabaseJSON.TransferBody(
      bucket: object.bucket.text, source: source, target: target.key.text,
      targetBucket: target.bucket == object.bucket ? nil : target.bucket.text)
  }

  /// Refuses a name that cannot be written, before anything is sent.
  func check(writing object: ObjectName) throws(StoreError) {
    try check(bucket: object.bucket)
    guard allows(object.key) else {
      throw StoreError(.keyRefused, "the store takes no object named “\(object.key)”")
    }
  }

  /// Compares the object's version with the one asked for; another writer may still come between.
  func compare(_ request: PutRequest, _ call: Call) throws(StoreError) {
    guard case .version(let version) = request.condition else { return }
    let found: ObjectInfo
    do throws(StoreError) {
      found = try info(request.object, call)
    } catch {
      guard error.kind == .notFound else { throw error }
      throw StoreError(.conflict, "“\(request.object)” was removed meanwhile: \(error)")
    }
    // Servers without the info call tell no version.
    guard (found.version ?? found.tag) == version else {
      throw StoreError(.conflict, "“\(request.object)” was written by another meanwhile")
    }
  }

  /// The body of a success, which must be the store's own: a proxy's page proves nothing.
  @discardableResult
  static func expect<Value: Decodable>(
    _ type: Value.Type, of response: HTTPResponse, reading: Bool = false
  ) throws(StoreError) -> Value {
    guard response.status == 200 else {
      throw SupabaseErrors.verdict(on: response, reading: reading).error
    }
    return try SupabaseJSON.decode(type, from: response)
  }
}

extension PutRequest {
  /// Whether an object that is there may be replaced.
  var overwrites: Bool { condition != .absent }

  /// The media type alone: a bucket's rule compares the whole text. A form's type would make the
  /// server take the bytes apart.
  var bareType: String {
    let bare = contentType.prefix { $0 != ";" }.filter { $0 != " " }
    let isForm = bare.lowercased().hasPrefix("multipart/")
    return bare.isEmpty || isForm ? "application/octet-stream" : String(bare)
  }
}
