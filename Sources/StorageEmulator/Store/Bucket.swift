import Platform

/// One bucket: what it says of itself, and its objects.
struct Bucket: Sendable {
  /// A bucket's settings, as its row holds them.
  struct Settings: Sendable {
    var isPublic = false
    /// In bytes; nil leaves the server's limit.
    var sizeLimit: Int?
    var allowedTypes: [String]?
  }

  let name: String
  var settings: Settings
  var owner: String?
  var createdAt: Timestamp
  var updatedAt: Timestamp
  private(set) var rows: [ByteString: ObjectRow] = [:]
  private var byKey = KeyIndex(.bytes)
  private var byLowered = KeyIndex(.lowered)

  init(name: String, settings: Settings, owner: String?, now: Timestamp) {
    self.name = name
    self.settings = settings
    self.owner = owner
    createdAt = now
    updatedAt = now
  }

  mutating func set(_ row: ObjectRow) {
    if rows.updateValue(row, forKey: row.key) == nil {
      byKey.insert(row.key)
      byLowered.insert(row.key)
    }
  }

  mutating func remove(_ key: ByteString) { rows[key] = nil }

  /// The keys in order, ready for a scan.
  mutating func index(_ order: KeyIndex.Order) -> KeyIndex {
    let rows = rows
    switch order {
    case .bytes:
      byKey.sort { rows[$0] != nil }
      return byKey
    case .lowered:
      byLowered.sort { rows[$0] != nil }
      return byLowered
    }
  }

  func json(showsType: Bool) -> JSON {
    var members: [JSON.Member] = [
      JSON.Member("id", .string(name)), JSON.Member("name", .string(name)),
      JSON.Member("owner", .string(owner ?? "")), JSON.Member("public", .bool(settings.isPublic)),
    ]
    if showsType { members.append(JSON.Member("type", "STANDARD")) }
    members += [
      JSON.Member(
        "file_size_limit", settings.sizeLimit.map { .integer(Int64($0)) } ?? .null),
      JSON.Member(
        "allowed_mime_types", settings.allowedTypes.map { .array($0.map { .string($0) }) } ?? .null),
      JSON.Member("created_at", .string(TimeText.iso(createdAt))),
      JSON.Member("updated_at", .string(TimeText.iso(updatedAt))),
    ]
    return .object(members)
  }

  /// The least byte string above every one with this prefix; nil when there is none.
  static func end(ofPrefix prefix: [UInt8]) -> [UInt8]? {
    var end = prefix
    while let last = end.popLast() {
      if last < 255 { return end + [last + 1] }
    }
    return nil
  }
}
