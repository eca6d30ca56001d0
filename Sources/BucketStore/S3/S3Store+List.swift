package import Platform

/// Listings by ListObjectsV2.
extension S3Store {
  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    if !request.delimited, features.withLock({ $0.flatOrder }) == false { throw Self.unordered }
    let page: ListPage
    do throws(StoreError) {
      page = try self.page(request, limit: pageSize, call)
    } catch {
      guard error.kind == .notFound, request.cursor == nil else { throw error }
      return ListPage(objects: [], folders: [], next: nil)
    }
    return page
  }

  /// Some servers keep folders together (`a/b` before `a.b`), and pages that follow that order
  /// cannot be joined to what callers are promised.
  private static let unordered = StoreError(
    .unsupported, "the store lists keys in an order of its own")

  /// - Throws: `StoreError`; `notFound` for a missing bucket.
  func page(_ request: ListRequest, limit: Int, _ call: Call) throws(StoreError) -> ListPage {
    guard request.prefix.string != nil else {
      // Keys are text: nothing begins with what is none.
      return ListPage(objects: [], folders: [], next: nil)
    }
    let place = request.cursor.map { S3Cursor($0) }
    var question = Question("GET", bucket: request.bucket)
    question.query = [
      ("list-type", "2"), ("max-keys", ByteString(String(limit))), ("prefix", request.prefix),
      ("encoding-type", "url"),
    ]
    if request.delimited { question.query.append(("delimiter", "/")) }
    switch place?.next {
    case .token(let token): question.query.append(("continuation-token", ByteString(token)))
    case .after(let key): question.query.append(("start-after", key))
    case nil: break
    }
    let response = try ask(question, call)
    let reader = S3PageReader()
    guard reader.read(response.body) else { throw Self.strange("listing") }
    var page = ListPage(objects: reader.objects, folders: reader.folders, next: nil)
    guard let last = [page.objects.last?.key, page.folders.last].compactMap({ $0 }).max() else {
      guard !reader.isTruncated else {
        return try following(page, reader, place?.last ?? "", place)
      }
      return page
    }
    if !request.delimited {
      guard Self.isOrdered(page.objects, after: place?.last) else {
        features.withLock { $0.flatOrder = false }
        throw Self.unordered
      }
    } else {
      page.objects.sort { $0.key < $1.key }
      page.folders.sort()
    }
    return reader.isTruncated ? try following(page, reader, last, place) : page
  }

  private func following(
    _ page: ListPage, _ reader: S3PageReader, _ last: ByteString, _ place: S3Cursor?
  ) throws(StoreError) -> ListPage {
    var page = page
    let next: S3Cursor.Next = reader.next.map { .token($0) } ?? .after(last)
    guard next != place?.next else {
      throw StoreError(.server, "the server's listing does not go on and does not end")
    }
    page.next = S3Cursor(next: next, last: last).cursor
    return page
  }

  private static func isOrdered(_ objects: [ObjectInfo], after last: ByteString?) -> Bool {
    var before = last
    for object in objects {
      if let before, before >= object.key { return false }
      before = object.key
    }
    return true
  }
}

/// Where a page ended: how to ask for the next, and the last key, with which orders are compared.
struct S3Cursor {
  enum Next: Equatable {
    case token(String)
    /// For servers that give no token.
    case after(ByteString)
  }

  let next: Next
  let last: ByteString

  init(next: Next, last: ByteString) {
    self.next = next
    self.last = last
  }

  /// Only this store made the text: what does not fit begins anew at the key.
  init(_ cursor: ListCursor) {
    let parts = cursor.text.split(separator: " ", omittingEmptySubsequences: false)
    last = parts.first.flatMap { Percent.decode($0.utf8) } ?? ByteString()
    next =
      parts.count == 2
      ? .token(Percent.decode(parts[1].utf8)?.string ?? "") : .after(last)
  }

  var cursor: ListCursor {
    let place = Percent.encode(last)
    guard case .token(let token) = next else { return ListCursor(place) }
    return ListCursor(place + " " + Percent.encode(ByteString(token)))
  }
}

/// Reads one answer of ListObjectsV2, row by row.
final class S3PageReader {
  private(set) var objects: [ObjectInfo] = []
  private(set) var folders: [ByteString] = []
  private(set) var next: String?
  private(set) var isTruncated = false
  private var isListing = false
  private var isEncoded = false
  private var row = ObjectInfo(key: ByteString(), size: nil, tag: nil, modified: nil)

  /// - Returns: false when it is no such answer.
  func read(_ body: [UInt8]) -> Bool {
    guard XMLReader.read(body, { self.take($0, $1) }), isListing else { return false }
    // The element that says so comes after the rows with some servers.
    guard isEncoded else { return true }
    for index in objects.indices { objects[index].key = Self.decoded(objects[index].key) }
    folders = folders.map(Self.decoded)
    return true
  }

  private func take(_ path: [String], _ bytes: [UInt8]) {
    guard path.first == "ListBucketResult" else { return }
    var text: String { String(decoding: bytes, as: UTF8.self) }
    switch path.count {
    case 1: isListing = true
    case 2:
      switch path[1] {
      case "IsTruncated": isTruncated = text == "true"
      case "NextContinuationToken": next = text.isEmpty ? nil : text
      case "EncodingType": isEncoded = text == "url"
      case "Contents":
        row.version = row.tag
        if !row.key.isEmpty { objects.append(row) }
        row = ObjectInfo(key: ByteString(), size: nil, tag: nil, modified: nil)
      default: break
      }
    case 3:
      switch (path[1], path[2]) {
      case ("Contents", "Key"): row.key = ByteString(bytes)
      case ("Contents", "Size"): row.size = Int64(text).flatMap { $0 < 0 ? nil : $0 }
      case ("Contents", "ETag"): row.tag = Self.quoted(text)
      case ("Contents", "LastModified"): row.modified = Timestamp(iso8601: text)
      case ("CommonPrefixes", "Prefix"): folders.append(ByteString(bytes))
      default: break
      }
    default: break
    }
  }

  /// Headers have the tag in quotes; some servers leave them out here.
  static func quoted(_ tag: String) -> String? {
    if tag.isEmpty { return nil }
    return tag.hasPrefix("\"") ? tag : "\"\(tag)\""
  }

  /// A space may come as `+`.
  private static func decoded(_ key: ByteString) -> ByteString {
    Percent.decode(key.bytes.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }) ?? key
  }
}
