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
    let isPartial: Bool
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
      "SELECT id, fetched, cost, bytes, partial FROM listings "
        + "WHERE bucket = ? AND prefix = ? AND complete = 1",
      .name(folder.bucket), .name(folder.prefix)
    ) { row in
      Facts(
        id: row.integer(0), fetchedAt: row.time(1), cost: Span(nanoseconds: row.integer(2)),
        bytes: row.integer(3), isPartial: row.flag(4))
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
      return builder.finish(
        fetchedAt: facts.fetchedAt, cost: facts.cost, after: nil, isPartial: facts.isPartial)
    } ?? nil
  }

  /// A change of a folder's rows, to be made in the order in which memory was changed.
  enum Change: Sendable {
    /// Writes a listing in place of what was kept; of a long one whose rows are there already, the
    /// draft's number.
    case save(Listing, draft: Int64?)
    /// Notes that a listing was found unchanged; one that is not kept any more is written anew.
    case confirm(Listing)
    /// Puts one entry in place of what the listing has under its name; nil takes the name out.
    case replace(ByteString, in: FolderName, ListingEntry?)
    /// Removes what is kept of a folder and of all beneath.
    case removeTree(FolderName)
    /// Sets the cost of all listings of a subtree that were fetched since a moment.
    case setCost(Span, below: FolderName, since: Timestamp)
  }

  /// Queues changes and returns at once, so that it may be called under the lock of what is in
  /// memory: that gives memory and index one order.
  func queue(_ changes: [Change]) -> Ticket {
    let ticket = Ticket()
    if changes.isEmpty {
      ticket.finish(true)
      return ticket
    }
    database.enqueue { (connection) throws(DatabaseError) in
      for change in changes { try make(change, &connection) }
    } done: { error in
      if let error { Log.warning("cannot keep listings: \(error)") }
      ticket.finish(error == nil)
    }
    return ticket
  }

  /// Waits for changes that were queued.
  final class Ticket: Sendable {
    private let isDone = Locked<Bool?>(nil)

    fileprivate func finish(_ done: Bool) {
      isDone.withLock { $0 = done }
      isDone.wakeAll()
    }

    /// - Returns: false when they were not made.
    @discardableResult
    func wait() -> Bool { isDone.wait { $0 } ?? false }
  }

  private func make(_ change: Change, _ connection: inout Connection) throws(DatabaseError) {
    switch change {
    case .save(let listing, let draft?):
      try Self.checkDraft(draft, of: listing.folder, &connection)
      try Self.complete(listing.folder, draft, &connection)
    case .save(let listing, nil):
      let id = try insert(listing, &connection)
      try insertEntries(of: listing, 0..<listing.count, id, &connection)
      try insertHidden(of: listing, id, &connection)
      try Self.complete(listing.folder, id, &connection)
    case .confirm(let listing):
      try connection.run(
        "UPDATE listings SET fetched = ?, cost = ? "
          + "WHERE bucket = ? AND prefix = ? AND complete = 1 AND partial = 0",
        .time(listing.fetchedAt), .integer(listing.cost.nanoseconds),
        .name(listing.folder.bucket), .name(listing.folder.prefix))
      if connection.changes == 0 { try make(.save(listing, draft: nil), &connection) }
    case .replace(let name, let folder, let entry):
      try replace(name, in: folder, with: entry, &connection)
    case .removeTree(let folder): try Self.removeTree(folder, &connection)
    case .setCost(let cost, let root, let start):
      try connection.run(
        "UPDATE listings SET cost = ? "
          + "WHERE bucket = ? AND prefix >= ? AND prefix < ? AND fetched >= ? AND complete = 1",
        .integer(cost.nanoseconds), .name(root.bucket), .name(root.prefix),
        .name(Self.end(of: root.prefix)), .time(start))
    }
  }

  /// Writes the rows of a listing that is too long for one transaction; nobody sees them yet.
  ///
  /// - Returns: the draft's number; nil for a listing that is short, or cannot be written.
  func draft(_ listing: Listing) -> Int64? {
    guard listing.count + listing.hiddenKeys.count > Self.batch else { return nil }
    let id = write("keep \(listing.folder)") { (connection) throws(DatabaseError) in
      let id = try insert(listing, &connection)
      try insertHidden(of: listing, id, &connection)
      return id
    }
    guard let id else { return nil }
    var start = 0
    while start < listing.count {
      let part = start..<min(start + Self.batch, listing.count)
      let done: Void? = write("keep \(listing.folder)") { (connection) throws(DatabaseError) in
        try Self.checkDraft(id, of: listing.folder, &connection)
        try insertEntries(of: listing, part, id, &connection)
      }
      guard done != nil else {
        write("tidy \(listing.folder)") { (connection) throws(DatabaseError) in
          try Self.removeDraft(id, &connection)
        }
        return nil
      }
      start = part.upperBound
    }
    return id
  }

  /// Makes sure that a number is still the draft's: the index may have been made anew meanwhile.
  private static func checkDraft(
    _ id: Int64, of folder: FolderName, _ connection: inout Connection
  ) throws(DatabaseError) {
    let isThere = try connection.first(
      "SELECT 1 FROM listings WHERE id = ? AND bucket = ? AND prefix = ? AND complete = 0",
      .integer(id), .name(folder.bucket), .name(folder.prefix)
    ) { _ in true }
    if isThere == nil { throw DatabaseError(code: 4, message: "the draft of \(folder) is gone") }
  }

  /// Removes a draft that is of no use.
  func discard(draft id: Int64) {
    write("tidy listings") { (connection) throws(DatabaseError) in
      try Self.removeDraft(id, &connection)
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

  private static func removeDraft(_ id: Int64, _ connection: inout Connection)
    throws(DatabaseError)
  {
    let isDraft = try connection.first(
      "SELECT 1 FROM listings WHERE id = ? AND complete = 0", .integer(id)
    ) { _ in true }
    if isDraft != nil { try remove(id, &connection) }
  }

  private static func remove(_ id: Int64, _ connection: inout Connection) throws(DatabaseError) {
    try connection.run("DELETE FROM entries WHERE listing = ?", .integer(id))
    try connection.run("DELETE FROM listings WHERE id = ?", .integer(id))
  }

  private func replace(
    _ name: ByteString, in folder: FolderName, with entry: ListingEntry?,
    _ connection: inout Connection
  ) throws(DatabaseError) {
    guard let segment = names.segment(of: name), let facts = try Self.facts(folder, &connection)
    else { return }
    try connection.run(
      "DELETE FROM entries WHERE listing = ? AND name = ? AND kind < ?",
      .integer(facts.id), .name(segment), .integer(Int64(ListingBuilder.hiddenKind)))
    if let entry { try Self.insert(entry, segment, facts.id, &connection) }
  }

  private static func removeTree(_ folder: FolderName, _ connection: inout Connection)
    throws(DatabaseError)
  {
    let ids =
      if folder.isBuckets {
        try connection.rows("SELECT id FROM listings WHERE complete = 1") { $0.integer(0) }
      } else {
        try connection.rows(
          "SELECT id FROM listings "
            + "WHERE bucket = ? AND prefix >= ? AND prefix < ? AND complete = 1",
          .name(folder.bucket), .name(folder.prefix), .name(end(of: folder.prefix))
        ) { $0.integer(0) }
      }
    for id in ids { try remove(id, &connection) }
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

  /// A place in the order in which listings were fetched.
  struct Place: Sendable {
    let fetchedAt: Timestamp
    let id: Int64
  }

  /// Removes the listings that were fetched longest ago, at most `count` of them.
  ///
  /// A listing counts as fetched no longer ago than any that is kept beneath it: without the folders
  /// above, nobody finds the way to those below. Such a one is passed over.
  /// - Parameters:
  ///   - spared: folders that are passed over too.
  ///   - place: where to begin; nil at the oldest.
  /// - Returns: the folders that went, their bytes, and where to go on; nil at the end.
  func removeOldest(_ count: Int, sparing spared: Set<FolderName>, from place: Place?) -> (
    folders: [FolderName], bytes: Int64, next: Place?
  ) {
    let removed = write("evict listings") {
      (connection) throws(DatabaseError) -> ([Line], Place?) in
      var victims: [Line] = []
      var place = place
      while true {
        let lines = try Self.oldest(Self.chunk, from: place, &connection)
        for line in lines {
          place = line.place
          guard !spared.contains(line.folder), try !Self.isAbove(line, &connection) else {
            continue
          }
          victims.append(line)
          try Self.remove(line.place.id, &connection)
          if victims.count == count { return (victims, place) }
        }
        if lines.count < Self.chunk { return (victims, nil) }
      }
    }
    guard let (victims, next) = removed else { return ([], 0, nil) }
    return (victims.map(\.folder), victims.reduce(0) { $0 + $1.bytes }, next)
  }

  /// A listing as eviction sees it.
  private struct Line: Sendable {
    let place: Place
    let folder: FolderName
    let bytes: Int64
  }

  private static let chunk = 100

  private static func oldest(
    _ count: Int, from place: Place?, _ connection: inout Connection
  ) throws(DatabaseError) -> [Line] {
    try connection.rows(
      "SELECT id, bucket, prefix, bytes, fetched FROM listings "
        + "WHERE complete = 1 AND (fetched, id) > (?, ?) ORDER BY fetched, id LIMIT ?",
      .integer(place?.fetchedAt.nanoseconds ?? .min), .integer(place?.id ?? .min),
      .integer(Int64(count))
    ) { row in
      Line(
        place: Place(fetchedAt: row.time(4), id: row.integer(0)),
        folder: FolderName(bucket: row.name(1), prefix: row.name(2)), bytes: row.integer(3))
    }
  }

  /// Whether a listing that is kept beneath was fetched no earlier.
  private static func isAbove(_ line: Line, _ connection: inout Connection) throws(DatabaseError)
    -> Bool
  {
    let folder = line.folder
    let found =
      if folder.isBuckets {
        try connection.first(
          "SELECT 1 FROM listings WHERE complete = 1 AND bucket > ? AND fetched >= ? LIMIT 1",
          .name(folder.bucket), .time(line.place.fetchedAt)
        ) { _ in true }
      } else {
        try connection.first(
          "SELECT 1 FROM listings WHERE complete = 1 AND bucket = ? AND prefix > ? AND prefix < ? "
            + "AND fetched >= ? LIMIT 1",
          .name(folder.bucket), .name(folder.prefix), .name(end(of: folder.prefix)),
          .time(line.place.fetchedAt)
        ) { _ in true }
      }
    return found ?? false
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
