import BucketStore
import FileCache
import PendingQueue
import Platform

/// The copy of an object that is kept on this device.
struct CopyReport: Codable, Equatable, Sendable {
  /// Where in the mount.
  let path: String
  /// The copy's absolute path; read it, never change it.
  let copy: String
  let fetchedAt: String
  let size: Int64

  enum CodingKeys: String, CodingKey {
    case path, copy, size
    case fetchedAt = "fetched_at"
  }

  init(_ copy: CopyInfo, _ path: String) {
    self.init(
      path: path, copy: copy.path.description, fetchedAt: copy.fetched.text,
      size: copy.info.size ?? 0)
  }

  init(path: String, copy: String, fetchedAt: String, size: Int64) {
    self.path = path
    self.copy = copy
    self.fetchedAt = fetchedAt
    self.size = size
  }

  /// The line for people.
  var text: String { "\(copy)\t\(fetchedAt)\t\(size)\n" }
}

/// All that is known of an object.
struct ObjectReport: Codable, Equatable, Sendable {
  let path: String
  let bucket: String
  let key: String
  /// `remote`; `cached` when a copy is on this device; `writing`, `waiting`, `uploading` or `failed`
  /// when the store does not have it yet.
  let state: String
  /// Whether the store has just said so; else these are the facts kept from before.
  let confirmed: Bool
  @Nullable var size: Int64?
  @Nullable var etag: String?
  @Nullable var version: String?
  @Nullable var modified: String?
  @Nullable var contentType: String?
  /// The user's own metadata; null where the store does not tell it.
  @Nullable var metadata: [String: String]?
  @Nullable var copy: String?
  @Nullable var fetchedAt: String?
  /// The record of a file that the store does not have yet.
  @Nullable var pending: QueueReport?

  enum CodingKeys: String, CodingKey {
    case path, bucket, key, state, confirmed, size, etag, version, modified, metadata, copy, pending
    case contentType = "content_type"
    case fetchedAt = "fetched_at"
  }

  /// The lines for people.
  var text: String {
    var rows: [(String, String)] = [
      ("bucket", bucket), ("key", key),
      ("state", state + (confirmed || pending != nil ? "" : " (not confirmed)")),
    ]
    func add(_ name: String, _ value: String?) {
      if let value { rows.append((name, value)) }
    }
    if let pending {
      add("reason", pending.reason)
      if pending.state == "failed" { add("hint", pending.advice) }
      if pending.attempts > 0 { add("attempts", "\(pending.attempts)") }
      add("next try", pending.nextTry)
      if pending.state == "uploading" { add("sent", "\(pending.sent) bytes") }
    }
    add("size", size.map { "\($0) bytes" })
    add("etag", etag)
    add("version", version)
    add("modified", modified)
    add("type", contentType)
    for (name, value) in (metadata ?? [:]).sorted(by: { $0.key < $1.key }) {
      add("metadata", "\(name) = \(value)")
    }
    add("copy", copy)
    add("fetched", fetchedAt)
    let width = 10
    return path + "\n"
      + rows.map { name, value in
        "  " + name + String(repeating: " ", count: width - name.count) + value + "\n"
      }.joined()
  }
}

extension ObjectReport {
  /// - Parameters:
  ///   - confirmed: whether the store has just said so.
  ///   - copy: what is kept of it on this device.
  init(
    _ path: String, _ object: ObjectName, _ info: ObjectInfo, confirmed: Bool, _ copy: CopyInfo?
  ) {
    self.init(
      path: path, bucket: object.bucket.description, key: object.key.description,
      state: copy == nil ? "remote" : "cached", confirmed: confirmed, size: info.size,
      etag: info.tag, version: info.version, modified: info.modified?.text,
      contentType: info.contentType, metadata: info.userMetadata, copy: copy?.path.description,
      fetchedAt: copy?.fetched.text)
  }
}

extension ObjectReport {
  /// - Parameter copy: where its bytes are on this device.
  init(_ path: String, _ entry: PendingEntry, _ report: QueueReport, copy: CopyReport?) {
    self.init(
      path: path, bucket: report.bucket, key: report.objectPath, state: report.state,
      confirmed: false, size: entry.size, modified: entry.modified.text,
      contentType: entry.record.contentType, copy: copy?.copy, pending: report)
  }
}

/// An object whose key cannot be a path.
struct HiddenKeyReport: Codable, Equatable, Sendable {
  let bucket: String
  /// One that ends in `/` stands for all that begin with it.
  let key: String
  let reason: String

  init(_ object: ObjectName) {
    self.init(
      bucket: object.bucket.description, key: object.key.description,
      reason: Self.reason(object.key))
  }

  init(bucket: String, key: String, reason: String) {
    self.bucket = bucket
    self.key = key
    self.reason = reason
  }

  private static func reason(_ key: ByteString) -> String {
    var segments = key.split(at: ByteString.slash)
    if segments.count > 1, segments.last?.isEmpty == true { segments.removeLast() }
    for segment in segments {
      if segment.isEmpty { return "a segment is empty" }
      if segment == "." || segment == ".." { return "a segment is \(segment)" }
      if segment.count > KeyNames.longestName { return "a segment is over 255 bytes" }
      if !KeyNames.isName(segment) { return "a control character or a backslash" }
    }
    return "a folder has the same name, or the name leads to another key"
  }

  /// The line for people.
  var text: String { "\(bucket)\t\(key)\t\(reason)\n" }
}
