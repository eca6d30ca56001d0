package import Platform

/// Buckets and the facts of objects.
extension S3Store {
  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    let response = try ask(Question("GET", bucket: nil), call)
    var buckets: [BucketInfo] = []
    var name: ByteString?
    var created: Timestamp?
    var root: String?
    let isRead = XMLReader.read(response.body) { path, text in
      switch path.last {
      case "Name": name = ByteString(text)
      case "CreationDate": created = Timestamp(iso8601: String(decoding: text, as: UTF8.self))
      case "Bucket":
        if let name { buckets.append(BucketInfo(name: name, created: created)) }
        (name, created) = (nil, nil)
      default: if path.count == 1 { root = path[0] }
      }
    }
    guard isRead, root == "ListAllMyBucketsResult" else { throw Self.strange("list of buckets") }
    return buckets.sorted { $0.name < $1.name }
  }

  /// Asked by a listing of one key, whose failure has words, and which needs the right that reading
  /// a folder needs.
  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    do throws(StoreError) {
      _ = try page(ListRequest(bucket: bucket, prefix: "", delimited: true), limit: 1, call)
      return true
    } catch {
      if error.kind == .notFound { return false }
      throw error
    }
  }

  /// By HEAD. A failure of it has no words, and a missing object may be the word of a proxy: the
  /// object's first byte is asked for then, whose failure has a body.
  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    let response = try send(Question("HEAD", object), call)
    if response.status == 200 { return try facts(of: object, response) }
    if response.status == 404, response.headers["x-amz-request-id"] != nil {
      throw StoreError(.notFound, "the store has no “\(object)”")
    }
    var question = Question("GET", object)
    question.headers = [("Range", "bytes=0-0")]
    let read = try send(question, call)
    switch read.status {
    case 200, 206, 416:
      // It came to be between the two, or HEAD was refused by what stands before the store. An
      // empty one has no first byte.
      let again = try ask(Question("HEAD", object), call)
      return try facts(of: object, again)
    default: throw S3Errors.error(on: read, reading: true)
    }
  }

  private func facts(of object: ObjectName, _ response: HTTPResponse) throws(StoreError)
    -> ObjectInfo
  {
    let headers = response.headers
    guard let tag = Self.tag(in: response) else { throw Self.strange("description") }
    return ObjectInfo(
      key: object.key, size: headers["content-length"].flatMap { Int64($0) }, tag: tag,
      version: EntityTag.unmarked(tag),
      modified: headers["last-modified"].flatMap { Timestamp(httpDate: $0) },
      contentType: headers["content-type"], userMetadata: S3Metadata.metadata(headers))
  }

  // MARK: - Tags

  /// The tag in an answer about an object, as it is told further.
  ///
  /// That of an object which the store encrypts with another's key looks like a digest of its
  /// bytes, and is none: it gets a mark. Listings do not tell which are such.
  static func tag(in response: HTTPResponse) -> String? {
    guard var tag = response.headers["etag"].map(EntityTag.strong) else { return nil }
    // SeaweedFS describes a folder without an object of its own as an empty object of no parts.
    if tag.hasSuffix(noParts) { tag = tag.dropLast(noParts.count) + "\"" }
    let encryption = response.headers["x-amz-server-side-encryption"] ?? ""
    let isOpaque =
      encryption.hasPrefix("aws:")
      || response.headers["x-amz-server-side-encryption-customer-algorithm"] != nil
    return isOpaque ? EntityTag.marked(tag) : tag
  }

  private static let noParts = "-0\""

  static func strange(_ what: String) -> StoreError {
    StoreError(.server, "an answer that is not the store's own (no \(what) in it)")
  }
}
