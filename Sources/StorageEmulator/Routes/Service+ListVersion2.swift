import Platform

/// Where a page of list version 2 ended, as the server writes it.
struct ListCursor {
  var name: String
  var order: String?
  var column: String?
  var after: String?

  init(name: String, order: String?, column: String?, after: String?) {
    self.name = name
    self.order = order
    self.column = column
    self.after = after
  }

  /// - Returns: nil for anything the server did not write.
  init?(reading text: String) {
    guard let bytes = Base64.decode(text), let lines = String(validating: bytes, as: UTF8.self)
    else { return nil }
    self.init(name: "", order: nil, column: nil, after: nil)
    for line in lines.split(separator: "\n") {
      let value = String(line.dropFirst(2))
      switch line.prefix(2) {
      case "l:": name = value
      case "o:": order = value
      case "c:": column = value
      case "a:": after = value
      default: return nil
      }
    }
  }

  var encoded: String {
    var lines = ["l:" + name]
    if let order { lines.append("o:" + order) }
    if let column { lines.append("c:" + column) }
    if let after { lines.append("a:" + after) }
    return Base64.encode(Array(lines.joined(separator: "\n").utf8))
  }
}

extension Service {
  /// What list version 2 was asked for.
  private struct Asked {
    var prefix: ByteString
    var limit: Int
    var cursor: ListCursor?
    var hasDelimiter: Bool
    var column: String?
    var order: String?

    var descends: Bool { (cursor?.order ?? order) == "desc" }
    var dateColumn: String? {
      let column = cursor?.column ?? column
      return column == "created_at" || column == "updated_at" ? column : nil
    }
  }

  func listVersion2(_ exchange: Exchange) throws(Failure) -> Response {
    let asked = try asked(try exchange.json(isRequired: false))
    let access = access(of: try caller(exchange))
    let bucket = exchange.bucket
    let isFaithful = world.configuration.listing == .faithful
    // One more than asked tells whether there is another page.
    let found = world.contents.withLock { contents -> [ListingScan.Entry] in
      guard contents.buckets[bucket] != nil else { return [] }
      let index = contents.buckets[bucket]?.index(.bytes) ?? KeyIndex(.bytes)
      let rows = contents.buckets[bucket]?.rows ?? [:]
      let isVisible = { (key: ByteString) -> ObjectRow? in
        rows[key].flatMap {
          access.allows(.select, bucket: bucket, key: key, owner: $0.owner) ? $0 : nil
        }
      }
      if asked.dateColumn != nil {
        return Self.byDate(asked, rows: rows.values.filter { isVisible($0.key) != nil })
      }
      if asked.hasDelimiter {
        return Self.delimited(asked, index, isFaithful: isFaithful, isVisible)
      }
      return Self.flat(asked, index, isVisible)
    }
    return answer(asked, found, isFaithful: isFaithful)
  }

  private func asked(_ body: JSON) throws(Failure) -> Asked {
    var cursor: ListCursor?
    if let text = body["cursor"]?.text {
      cursor = ListCursor(reading: text)
      if cursor == nil { throw .refused(.parameter("continuation token")) }
    }
    let limit = body["limit"]?.whole ?? 1000
    guard limit >= 1 else { throw .refused(.schema("body/limit must be >= 1")) }
    return Asked(
      prefix: ByteString(body["prefix"]?.text ?? ""), limit: Int(min(limit, 1000)),
      cursor: cursor, hasDelimiter: body["with_delimiter"]?.flag ?? false,
      column: body["sortBy"]?["column"]?.text, order: body["sortBy"]?["order"]?.text)
  }

  private static func flat(
    _ asked: Asked, _ index: KeyIndex, _ isVisible: (ByteString) -> ObjectRow?
  ) -> [ListingScan.Entry] {
    var result: [ListingScan.Entry] = []
    let first = index.position(of: asked.prefix.bytes)
    let end = Bucket.end(ofPrefix: asked.prefix.bytes).map { index.position(of: $0) }
    var low = first
    var high = end ?? index.entries.count
    if let last = asked.cursor.map({ Array($0.name.utf8) }) {
      if asked.descends {
        high = min(high, index.position(of: last))
      } else {
        low = max(low, index.position(of: last + [0]))
      }
    }
    while low < high, result.count <= asked.limit {
      let entry = index.entries[asked.descends ? high - 1 : low]
      if asked.descends { high -= 1 } else { low += 1 }
      if let row = isVisible(entry.key) { result.append(.object(row)) }
    }
    return result
  }

  private static func delimited(
    _ asked: Asked, _ index: KeyIndex, isFaithful: Bool,
    _ isVisible: @escaping (ByteString) -> ObjectRow?
  ) -> [ListingScan.Entry] {
    let scan = ListingScan(
      index, prefix: asked.prefix.bytes, descends: asked.descends, isFaithful: isFaithful,
      isVisible: isVisible)
    let count = asked.limit + 1
    return scan.run(
      from: asked.cursor.map {
        start(
          after: Array($0.name.utf8), index, descends: asked.descends, isFaithful: isFaithful,
          isVisible)
      }, limit: count, batch: min(max(count * 2, 100), 1000))
  }

  /// Where the page behind a cursor begins.
  ///
  /// The real server asks whether the cursor is a folder with a LIKE that does not escape the
  /// name, so that `_` stands for any character, and takes a file that has a folder of its name
  /// beside it for that folder.
  private static func start(
    after name: [UInt8], _ index: KeyIndex, descends: Bool, isFaithful: Bool,
    _ isVisible: (ByteString) -> ObjectRow?
  ) -> [UInt8] {
    let slash = [ByteString.slash]
    guard isFaithful else {
      // The repaired server writes its cursors with the slash of a folder.
      if descends { return name }
      return name.last == ByteString.slash
        ? name.dropLast() + [ByteString.slash + 1] : name + [0]
    }
    let isFolder = hasKeys(like: name + slash, index, isVisible)
    if descends { return isFolder ? name + slash : name }
    return isFolder ? name + [ByteString.slash + 1] : name + slash
  }

  /// Whether a visible key begins with the pattern, in which `_` stands for any one byte.
  private static func hasKeys(
    like pattern: [UInt8], _ index: KeyIndex, _ isVisible: (ByteString) -> ObjectRow?
  ) -> Bool {
    let literal = Array(pattern.prefix { $0 != UInt8(ascii: "_") })
    var position = index.position(of: literal)
    while position < index.entries.count {
      let entry = index.entries[position]
      guard entry.place.starts(with: literal) else { return false }
      let matches =
        entry.place.count >= pattern.count
        && zip(pattern, entry.place).allSatisfy { $0 == $1 || $0 == UInt8(ascii: "_") }
      if matches, isVisible(entry.key) != nil { return true }
      position += 1
    }
    return false
  }

  private static func byDate(
    _ asked: Asked, rows: [ObjectRow]
  ) -> [ListingScan.Entry] {
    struct Dated {
      let time: Timestamp
      let name: [UInt8]
      let entry: ListingScan.Entry
    }
    let prefix = asked.prefix.bytes
    var folders: [[UInt8]: (time: Timestamp, key: ByteString)] = [:]
    var dated: [Dated] = []
    for row in rows where row.key.hasPrefix(asked.prefix) {
      let slash = row.key.bytes.dropFirst(prefix.count).firstIndex(of: ByteString.slash)
      if asked.hasDelimiter, let slash {
        let folder = Array(row.key.bytes[...slash])
        let known = folders[folder] ?? (row.createdAt, row.key)
        folders[folder] = (min(known.time, row.createdAt), known.key)
      } else {
        let time = asked.dateColumn == "created_at" ? row.createdAt : row.updatedAt
        dated.append(Dated(time: time, name: row.key.bytes, entry: .object(row)))
      }
    }
    for (folder, first) in folders {
      dated.append(
        Dated(
          time: first.time, name: Array(ByteString(folder).withoutSlashes.bytes),
          entry: .folder(prefix: folder, firstKey: first.key)))
    }
    func precedes(_ left: Dated, _ right: Dated) -> Bool {
      if left.time != right.time { return left.time < right.time }
      return Bytes.compare(left.name, right.name) < 0
    }
    dated.sort { asked.descends ? precedes($1, $0) : precedes($0, $1) }
    if let cursor = asked.cursor {
      let last = Dated(
        time: cursor.after.flatMap(TimeText.readISO) ?? .epoch, name: Array(cursor.name.utf8),
        entry: .folder(prefix: [], firstKey: ""))
      dated.removeAll { asked.descends ? !precedes($0, last) : !precedes(last, $0) }
    }
    return dated.prefix(asked.limit + 1).map(\.entry)
  }

  private func answer(
    _ asked: Asked, _ found: [ListingScan.Entry], isFaithful: Bool
  ) -> Response {
    var folders: [JSON] = []
    var objects: [JSON] = []
    let level = asked.prefix.split(at: ByteString.slash).count
    for entry in found.prefix(asked.limit) {
      switch entry {
      case .folder(let prefix, _):
        let name = ByteString(prefix).withoutSlashes
        folders.append([
          "id": .null, "name": .string(name.text + "/"), "key": Self.segment(level, of: name),
          "metadata": .null, "updated_at": .null, "created_at": .null, "last_accessed_at": .null,
        ])
      case .object(let row):
        var members: [JSON.Member] = [
          JSON.Member("id", .string(row.id)), JSON.Member("name", .string(row.key.text)),
        ]
        if asked.hasDelimiter {
          members.append(JSON.Member("key", Self.segment(level, of: row.key)))
        }
        objects.append(.object(members + row.listed))
      }
    }
    var members: [JSON.Member] = [JSON.Member("hasNext", .bool(found.count > asked.limit))]
    if found.count > asked.limit {
      let name: String
      var time: Timestamp?
      switch found[asked.limit - 1] {
      case .folder(let prefix, _):
        name = ByteString(prefix).withoutSlashes.text + (isFaithful ? "" : "/")
      case .object(let row):
        name = row.key.text
        time = asked.dateColumn == "created_at" ? row.createdAt : row.updatedAt
      }
      let cursor = ListCursor(
        name: name, order: asked.cursor?.order ?? asked.order,
        column: asked.cursor?.column ?? asked.column,
        after: asked.dateColumn == nil ? nil : time.map(TimeText.iso))
      members.append(JSON.Member("nextCursor", .string(cursor.encoded)))
      members.append(JSON.Member("nextCursorKey", .string(name)))
    }
    members.append(JSON.Member("folders", .array(folders)))
    members.append(JSON.Member("objects", .array(objects)))
    return Response(json: .object(members))
  }

  private static func segment(_ level: Int, of name: ByteString) -> JSON {
    let segments = name.split(at: ByteString.slash)
    return .string(level <= segments.count ? segments[level - 1].text : "")
  }
}

extension ByteString {
  /// Without the slashes at its end, all of them, as the server trims a folder's name.
  var withoutSlashes: ByteString {
    var bytes = bytes
    while bytes.last == ByteString.slash { bytes.removeLast() }
    return ByteString(bytes)
  }
}

extension ObjectRow {
  /// What both list versions say of an object behind its names.
  var listed: [JSON.Member] {
    [
      JSON.Member("updated_at", .string(TimeText.iso(updatedAt))),
      JSON.Member("created_at", .string(TimeText.iso(createdAt))),
      JSON.Member("last_accessed_at", .string(TimeText.iso(createdAt))),
      JSON.Member("metadata", systemMetadata),
    ]
  }
}
