import BucketStore
import Platform
import SQLite

/// Kept listings in the index.
///
/// A failure of the index is logged and costs what was kept, never the answer to a person.
struct ListingRows: Sendable {
  let database: Database
  let names: KeyNames

  /// What is known of a kept listing without its entries.
  struct Facts: Sendable {
    let id: Int64
    let fetchedAt: Timestamp
    let cost: Span
    let bytes: Int64
  }

  /// Rows of one transaction: what other writers wait for at most.
  private static let batch = 10_000

  func facts(_ folder: FolderName) -> Facts? {
    read("look up \(folder)") { (connection) throws(DatabaseError) in
      try Self.facts(folder, &connection)
    } ?? nil
  }

  private static func facts(_ folder: FolderName, _ connection: inout Connection)
    throws(DatabaseError) -> Facts?
  {
    try connection.first(
      "SELECT id, fetched, cost, bytes FROM listings "
        + "WHERE bucket = ? AND prefix = ? AND complete = 1",
      .name(folder.bucket), .name(folder.prefix)
    ) { row in
      Facts(
        id: row.integer(0), fetchedAt: row.time(1), cost: Span(nanoseconds: row.integer(2)),
        bytes: row.integer(3))
    }
  }

  func load(_ folder: FolderName) -> Listing? {
    read("read \(folder)") { (connection) throws(DatabaseError) -> Listing? in
      guard let facts = try Self.facts(folder, &connection) else { return nil }
      var builder = ListingBuilder(folder, names: names)
      try connection.forEach(
        "SELECT name, kind, size, tag, modified, type FROM entries WHERE listing = ?",
        .integer(facts.id)
      ) { row in
        builder.add(row)
        return true
      }
      return builder.finish(fetchedAt: facts.fetchedAt, cost: facts.cost, after: nil)
    } ?? nil
  }

  /// Writes listings in place of what was kept of the same folders.
  func save(_ listings: [Listing]) {
    var small: [Listing] = []
    for listing in listings {
      if listing.count + listing.hiddenKeys.count <= Self.batch {
        small.append(listing)
      } else {
        saveLarge(listing)
      }
    }
    guard !small.isEmpty else { return }
    let ready = small
    write("keep listings") { (connection) throws(DatabaseError) in
      for listing in ready {
        let id = try insert(listing, &connection)
        try insertEntries(of: listing, 0..<listing.count, id, &connection)
        try insertHidden(of: listing, id, &connection)
        try Self.complete(listing.folder, id, &connection)
      }
    }
  }

  /// A listing too long for one transaction shows up with the last.
  private func saveLarge(_ listing: Listing) {
    let id = write("keep \(listing.folder)") { (connection) throws(DatabaseError) in
      let id = try insert(listing, &connection)
      try insertHidden(of: listing, id, &connection)
      return id
    }
    guard let id else { return }
    var start = 0
    while start < listing.count {
      let part = start..<min(start + Self.batch, listing.count)
      let done: Void? = write("keep \(listing.folder)") { (connection) throws(DatabaseError) in
        try insertEntries(of: listing, part, id, &connection)
      }
      guard done != nil else { return }
      start = part.upperBound
    }
    write("keep \(listing.folder)") { (connection) throws(DatabaseError) in
      try Self.complete(listing.folder, id, &connection)
    }
  }

  private func insert(_ listing: Listing, _ connection: inout Connection) throws(DatabaseError)
    -> Int64
  {
    try connection.run(
      "INSERT INTO listings (bucket, prefix, fetched, cost, bytes, hidden, complete) "
        + "VALUES (?, ?, ?, ?, ?, ?, 0)",
      .name(listing.folder.bucket), .name(listing.folder.prefix), .time(listing.fetchedAt),
      .integer(listing.cost.nanoseconds), .integer(listing.byteCount),
      .integer(Int64(listing.hiddenKeys.count)))
    return connection.lastRowID
  }

  private func insertEntries(
    of listing: Listing, _ range: Range<Int>, _ id: Int64, _ connection: inout Connection
  ) throws(DatabaseError) {
    for index in range {
      let entry = listing[index]
      guard let segment = names.segment(of: entry.name) else { continue }
      try Self.insert(entry, segment, id, &connection)
    }
  }

  private static func insert(
    _ entry: ListingEntry, _ segment: ByteString, _ id: Int64, _ connection: inout Connection
  ) throws(DatabaseError) {
    try connection.run(
      "INSERT OR REPLACE INTO entries (listing, name, kind, size, tag, modified, type) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?)",
      .integer(id), .name(segment), .integer(Int64(entry.kind.rawValue)),
      .integer(orNull: entry.size), .text(orNull: entry.tag), .time(orNull: entry.modified),
      .text(orNull: entry.contentType))
  }

  private func insertHidden(
    of listing: Listing, _ id: Int64, _ connection: inout Connection
  ) throws(DatabaseError) {
    for key in listing.hiddenKeys {
      try connection.run(
        "INSERT OR REPLACE INTO entries (listing, name, kind) VALUES (?, ?, ?)",
        .integer(id), .name(key), .integer(Int64(ListingBuilder.hiddenKind)))
    }
  }

  private static func complete(
    _ folder: FolderName, _ id: Int64, _ connection: inout Connection
  ) throws(DatabaseError) {
    if let old = try facts(folder, &connection) { try remove(old.id, &connection) }
    try connection.run("UPDATE listings SET complete = 1 WHERE id = ?", .integer(id))
  }

  private static func remove(_ id: Int64, _ connection: inout Connection) throws(DatabaseError) {
    try connection.run("DELETE FROM entries WHERE listing = ?", .integer(id))
    try connection.run("DELETE FROM listings WHERE id = ?", .integer(id))
  }

  /// Notes that a listing was found unchanged.
  func touch(_ folder: FolderName, fetchedAt: Timestamp, cost: Span) {
    write("confirm \(folder)") { (connection) throws(DatabaseError) in
      try connection.run(
        "UPDATE listings SET fetched = ?, cost = ? "
          + "WHERE bucket = ? AND prefix = ? AND complete = 1",
        .time(fetchedAt), .integer(cost.nanoseconds), .name(folder.bucket), .name(folder.prefix))
    }
  }

  /// Sets the cost of all listings of a subtree that were fetched since a moment.
  func setCost(_ cost: Span, below root: FolderName, since start: Timestamp) {
    write("confirm \(root)") { (connection) throws(DatabaseError) in
      try connection.run(
        "UPDATE listings SET cost = ? "
          + "WHERE bucket = ? AND prefix >= ? AND prefix < ? AND fetched >= ? AND complete = 1",
        .integer(cost.nanoseconds), .name(root.bucket), .name(root.prefix),
        .name(Self.end(of: root.prefix)), .time(start))
    }
  }

  /// Puts one entry in place of what the listing of a folder has under its name.
  ///
  /// - Parameter entry: nil takes the name out.
  func replace(_ name: ByteString, in folder: FolderName, with entry: ListingEntry?) {
    guard let segment = names.segment(of: name) else { return }
    write("change \(folder)") { (connection) throws(DatabaseError) in
      guard let facts = try Self.facts(folder, &connection) else { return }
      try connection.run(
        "DELETE FROM entries WHERE listing = ? AND name = ? AND kind < ?",
        .integer(facts.id), .name(segment), .integer(Int64(ListingBuilder.hiddenKind)))
      if let entry { try Self.insert(entry, segment, facts.id, &connection) }
    }
  }

  /// Removes what is kept of a folder and of all beneath.
  func removeTree(_ folder: FolderName) {
    write("forget \(folder)") { (connection) throws(DatabaseError) in
      let ids =
        if folder.isBuckets {
          try connection.rows("SELECT id FROM listings") { $0.integer(0) }
        } else {
          try connection.rows(
            "SELECT id FROM listings WHERE bucket = ? AND prefix >= ? AND prefix < ?",
            .name(folder.bucket), .name(folder.prefix), .name(Self.end(of: folder.prefix))
          ) { $0.integer(0) }
        }
      for id in ids { try Self.remove(id, &connection) }
    }
  }

  /// The first byte string after all that begin with a folder's prefix.
  private static func end(of prefix: ByteString) -> ByteString {
    prefix.isEmpty ? ByteString([0xFF, 0xFF]) : prefix.dropLast() + "0"
  }

  /// Removes what a crash left unfinished.
  func removeUnfinished() {
    write("tidy listings") { (connection) throws(DatabaseError) in
      let ids = try connection.rows("SELECT id FROM listings WHERE complete = 0") {
        $0.integer(0)
      }
      for id in ids { try Self.remove(id, &connection) }
    }
  }
}

extension ListingRows {
  /// Bytes of all kept listings.
  var totalBytes: Int64 {
    read("sum up listings") { (connection) throws(DatabaseError) in
      try connection.first("SELECT coalesce(sum(bytes), 0) FROM listings WHERE complete = 1") {
        $0.integer(0)
      } ?? 0
    } ?? 0
  }

  /// How many listings are kept.
  var count: Int {
    read("count listings") { (connection) throws(DatabaseError) in
      try connection.first("SELECT count(*) FROM listings WHERE complete = 1") {
        Int($0.integer(0))
      } ?? 0
    } ?? 0
  }

  /// Removes the listings that were fetched longest ago, at most `count` of them.
  ///
  /// - Parameter spared: folders that are passed over.
  /// - Returns: the folders that went, and their bytes.
  func removeOldest(_ count: Int, sparing spared: Set<FolderName>) -> (
    folders: [FolderName], bytes: Int64
  ) {
    let removed = write("evict listings") { (connection) throws(DatabaseError) in
      var victims: [(Int64, FolderName, Int64)] = []
      try connection.forEach(
        "SELECT id, bucket, prefix, bytes FROM listings WHERE complete = 1 ORDER BY fetched, id"
      ) { row in
        let folder = FolderName(bucket: row.name(1), prefix: row.name(2))
        if !spared.contains(folder) { victims.append((row.integer(0), folder, row.integer(3))) }
        return victims.count < count
      }
      for victim in victims { try Self.remove(victim.0, &connection) }
      return victims
    }
    guard let removed else { return ([], 0) }
    return (removed.map(\.1), removed.reduce(0) { $0 + $1.2 })
  }

  /// How many keys of the kept listings cannot be shown.
  var hiddenCount: Int {
    read("count hidden keys") { (connection) throws(DatabaseError) in
      try connection.first(
        "SELECT coalesce(sum(hidden), 0) FROM listings WHERE complete = 1"
      ) { Int($0.integer(0)) } ?? 0
    } ?? 0
  }

  /// The keys that cannot be shown, in order.
  func hiddenKeys(limit: Int) -> [ObjectName] {
    read("list hidden keys") { (connection) throws(DatabaseError) in
      try connection.rows(
        "SELECT bucket, name FROM listings JOIN entries ON listing = id "
          + "WHERE hidden > 0 AND complete = 1 AND kind = ? ORDER BY bucket, name LIMIT ?",
        .integer(Int64(ListingBuilder.hiddenKind)), .integer(Int64(limit))
      ) { ObjectName(bucket: $0.name(0), key: $0.name(1)) }
    } ?? []
  }

  private func read<Result: Sendable>(
    _ purpose: String, _ body: (inout Connection) throws(DatabaseError) -> Result
  ) -> Result? {
    do throws(DatabaseError) {
      return try database.read(body)
    } catch {
      Log.warning("cannot \(purpose): \(error)")
      return nil
    }
  }

  @discardableResult
  private func write<Result: Sendable>(
    _ purpose: String,
    _ body: @escaping @Sendable (inout Connection) throws(DatabaseError) -> Result
  ) -> Result? {
    do throws(DatabaseError) {
      return try database.write(body)
    } catch {
      Log.warning("cannot \(purpose): \(error)")
      return nil
    }
  }
}
