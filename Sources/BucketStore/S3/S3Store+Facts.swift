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
    guard let tag = tag(in: response, of: object.bucket) else { throw Self.strange("description") }
    return ObjectInfo(
      key: object.key, size: headers["content-length"].flatMap { Int64($0) }, tag: tag,
      version: tag, modified: headers["last-modified"].flatMap { Timestamp(httpDate: $0) },
      contentType: headers["content-type"], userMetadata: S3Metadata.metadata(headers))
  }

  // MARK: - Tags

  /// The tag in an answer about an object, as it is told further.
  ///
  /// That of an object which the store encrypts with another's key looks like a digest of its
  /// bytes, and is none: it gets a mark.
  func tag(in response: HTTPResponse, of bucket: ByteString) -> String? {
    guard var tag = response.headers["etag"].map(EntityTag.strong) else { return nil }
    // SeaweedFS describes a folder without an object of its own as an empty object of no parts.
    if tag.hasSuffix(Self.noParts) { tag = tag.dropLast(Self.noParts.count) + "\"" }
    let encryption = response.headers["x-amz-server-side-encryption"] ?? ""
    let isOpaque =
      encryption.hasPrefix("aws:")
      || response.headers["x-amz-server-side-encryption-customer-algorithm"] != nil
    guard isOpaque else { return tag }
    features.withLock { _ = $0.opaque.insert(bucket) }
    return Self.marked(tag)
  }

  private static let noParts = "-0\""
  private static let mark = "-encrypted\""

  /// The mark goes where S3 writes the number of parts.
  static func marked(_ tag: String) -> String {
    tag.hasSuffix("\"") && tag.utf8.count == 34 ? tag.dropLast() + mark : tag
  }

  /// The tag as the server knows it.
  static func unmarked(_ tag: String) -> String {
    tag.hasSuffix(mark) ? tag.dropLast(mark.count) + "\"" : tag
  }

  static func strange(_ what: String) -> StoreError {
    StoreError(.server, "an answer that is not the store's own (no \(what) in it)")
  }
}
