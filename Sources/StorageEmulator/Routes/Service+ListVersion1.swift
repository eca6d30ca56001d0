import Platform

extension Service {
  /// What list version 1 was asked for.
  private struct Asked {
    var prefix: ByteString
    var limit: Int
    var offset: Int
    var search: ByteString
    var column: String
    var descends: Bool

    /// Prefix and search, as they are matched together.
    var start: [UInt8] { prefix.bytes + search.bytes }
  }

  func listVersion1(_ exchange: Exchange) throws(Failure) -> Response {
    let asked = try asked(exchange)
    let access = access(of: try caller(exchange))
    let bucket = exchange.bucket
    let isFaithful = world.configuration.listing == .faithful
    let entries = world.contents.withLock { contents -> [ListingScan.Entry] in
      guard contents.buckets[bucket] != nil else { return [] }
      let index = contents.buckets[bucket]?.index(.lowered) ?? KeyIndex(.lowered)
      let rows = contents.buckets[bucket]?.rows ?? [:]
      let isVisible = { (key: ByteString) -> ObjectRow? in
        rows[key].flatMap {
          access.allows(.select, bucket: bucket, key: key, owner: $0.owner) ? $0 : nil
        }
      }
      if asked.column != "name" { return Self.byDate(asked, index, isVisible) }
      // Offsets are counted from the folder's start: every page scans the earlier ones again.
      let scan = ListingScan(
        index, prefix: Bytes.lowered(asked.start), descends: asked.descends,
        isFaithful: isFaithful, isVisible: isVisible)
      let found = scan.run(
        from: nil, limit: asked.offset + asked.limit,
        batch: min(max(asked.limit * 2, 100), 1000))
      return Array(found.dropFirst(asked.offset))
    }
    return Response(json: .array(entries.map { Self.json($0, asked) }))
  }

  private func asked(_ exchange: Exchange) throws(Failure) -> Asked {
    let body = try exchange.json()
    var prefix = try exchange.text("prefix", in: body)
    if !prefix.isEmpty, !prefix.hasSuffix("/") { prefix += "/" }
    let limit = body["limit"]?.whole ?? 100
    let offset = body["offset"]?.whole ?? 0
    guard limit >= 1 else { throw .refused(.schema("body/limit must be >= 1")) }
    guard (0...1_000_000_000).contains(offset) else {
      throw .refused(.schema("body/offset must be >= 0"))
    }
    let columns: Set<String> = ["name", "updated_at", "created_at", "last_accessed_at"]
    let column = body["sortBy"]?["column"]?.text ?? "name"
    guard columns.contains(column) else {
      throw .refused(
        .schema("body/sortBy/column must be equal to one of the allowed values"))
    }
    return Asked(
      prefix: ByteString(prefix), limit: Int(min(limit, 1500)), offset: Int(offset),
      search: ByteString(body["search"]?.text ?? ""), column: column,
      descends: body["sortBy"]?["order"]?.text == "desc")
  }

  /// Folders first, by name; then objects by a date, equal dates in no order of their own.
  private static func byDate(
    _ asked: Asked, _ index: KeyIndex, _ isVisible: (ByteString) -> ObjectRow?
  ) -> [ListingScan.Entry] {
    let start = Bytes.lowered(asked.start)
    var folders: [(name: [UInt8], entry: ListingScan.Entry)] = []
    var seen: Set<[UInt8]> = []
    var rows: [ObjectRow] = []
    var position = index.position(of: start)
    while position < index.entries.count, index.entries[position].place.starts(with: start) {
      let key = index.entries[position].key
      position += 1
      guard let row = isVisible(key) else { continue }
      if let slash = key.bytes.dropFirst(start.count).firstIndex(of: ByteString.slash) {
        let folder = Array(key.bytes[...slash])
        if seen.insert(folder).inserted {
          folders.append((folder, .folder(prefix: folder, firstKey: key)))
        }
      } else {
        rows.append(row)
      }
    }
    folders.sort {
      asked.descends
        ? Bytes.compare($1.name, $0.name) < 0 : Bytes.compare($0.name, $1.name) < 0
    }
    func time(_ row: ObjectRow) -> Timestamp {
      asked.column == "updated_at" ? row.updatedAt : row.createdAt
    }
    rows.sort { asked.descends ? time($1) < time($0) : time($0) < time($1) }
    let all = folders.map(\.entry) + rows.map { .object($0) }
    return Array(all.dropFirst(asked.offset).prefix(asked.limit))
  }

  private static func json(_ entry: ListingScan.Entry, _ asked: Asked) -> JSON {
    switch entry {
    case .folder(let prefix, let firstKey):
      // The name is that of the first key, whatever the case of the others.
      let name = ByteString(firstKey.bytes.prefix(prefix.count)).withoutSlashes
      return [
        "name": .string(name.dropFirst(asked.prefix.count).text), "id": .null,
        "updated_at": .null, "created_at": .null, "last_accessed_at": .null, "metadata": .null,
      ]
    case .object(let row):
      return .object(
        [
          JSON.Member("name", .string(row.key.dropFirst(asked.prefix.count).text)),
          JSON.Member("id", .string(row.id)),
        ] + row.listed)
    }
  }
}
