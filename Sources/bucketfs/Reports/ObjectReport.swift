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

  /// The line for people.
  var text: String { "\(copy)\t\(fetchedAt)\t\(size)\n" }
}

/// All that is known of an object.
struct ObjectReport: Codable, Equatable, Sendable {
  let path: String
  let bucket: String
  let key: String
  /// `remote`, or `cached` when a copy is on this device.
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

  enum CodingKeys: String, CodingKey {
    case path, bucket, key, state, confirmed, size, etag, version, modified, metadata, copy
    case contentType = "content_type"
    case fetchedAt = "fetched_at"
  }

  /// The lines for people.
  var text: String {
    var rows: [(String, String)] = [
      ("bucket", bucket), ("key", key), ("state", state + (confirmed ? "" : " (not confirmed)")),
    ]
    func add(_ name: String, _ value: String?) {
      if let value { rows.append((name, value)) }
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

/// An object whose key cannot be a path.
struct HiddenKeyReport: Codable, Equatable, Sendable {
  let bucket: String
  let key: String
  let reason: String

  /// The line for people.
  var text: String { "\(bucket)\t\(key)\t\(reason)\n" }
}
