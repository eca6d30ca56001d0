import Platform

/// One object as the server's table holds it. A change makes a new row.
struct ObjectRow: Sendable {
  /// Stays through overwrites and moves.
  var id: String
  /// Another one after every write.
  var version: String
  var key: ByteString
  /// The subject of the token that wrote it; nil for a caller without one.
  var owner: String?
  var createdAt: Timestamp
  var updatedAt: Timestamp
  /// The time of the blob, not of the row.
  var modifiedAt: Timestamp
  var size: Int
  var type: String
  var cacheControl: String
  /// Quotes included.
  var tag: String
  var robots: String?
  var userMetadata: JSON?
  var blob: Blob
}

extension ObjectRow {
  /// What lists and policies call `metadata`: the system's part.
  var systemMetadata: JSON {
    var members: [JSON.Member] = [
      JSON.Member("eTag", .string(tag)),
      JSON.Member("size", .integer(Int64(size))),
      JSON.Member("mimetype", .string(type)),
      JSON.Member("cacheControl", .string(cacheControl)),
      JSON.Member("lastModified", .string(TimeText.iso(modifiedAt))),
      JSON.Member("contentLength", .integer(Int64(size))),
      JSON.Member("httpStatusCode", 200),
    ]
    if let robots { members.append(JSON.Member("xRobotsTag", .string(robots))) }
    return .object(members)
  }

  /// A row as delete and copy show it.
  func json(bucket: String) -> JSON {
    [
      "name": .string(key.text), "bucket_id": .string(bucket), "owner": .string(owner ?? ""),
      "owner_id": .string(owner ?? ""), "version": .string(version), "id": .string(id),
      "updated_at": .string(TimeText.iso(updatedAt)),
      "created_at": .string(TimeText.iso(createdAt)),
      "last_accessed_at": .string(TimeText.iso(createdAt)), "metadata": systemMetadata,
      "user_metadata": userMetadata ?? .null,
    ]
  }
}

extension ByteString {
  /// The name as JSON carries it; bytes that are not UTF-8 are replaced.
  var text: String { String(decoding: bytes, as: UTF8.self) }
}
