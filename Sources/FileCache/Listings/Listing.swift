package import Platform

/// What is in one folder, as the store told it at one time.
package struct Listing: Sendable {
  /// What it is the listing of.
  package let folder: FolderName
  /// When the store was asked.
  package let fetchedAt: Timestamp
  /// How long the answer took: a listing that was dear to get is believed longer.
  package let cost: Span
  /// Keys right below the folder that cannot be shown as names in it, whole.
  package let hiddenKeys: [ByteString]
  /// The latest time of its entries.
  package let newest: Timestamp?
  /// Whether it shows only what copies are kept of, and there may be more.
  package let isPartial: Bool
  let table: ListingTable

  init(
    folder: FolderName, fetchedAt: Timestamp, cost: Span, table: ListingTable,
    hiddenKeys: [ByteString], isPartial: Bool = false
  ) {
    self.folder = folder
    self.fetchedAt = fetchedAt
    self.cost = cost
    self.table = table
    self.hiddenKeys = hiddenKeys
    self.isPartial = isPartial
    newest = table.newest
  }

  /// How many lines it has.
  package var count: Int { table.count }

  /// About how much room it takes, in memory or in the index, in bytes.
  var byteCount: Int64 {
    Int64(hiddenKeys.reduce(table.byteCount + 300) { $0 + $1.count + 40 })
  }

  /// Whether another listing of the folder shows the same.
  func isSame(as other: Listing) -> Bool {
    isPartial == other.isPartial && hiddenKeys == other.hiddenKeys && table == other.table
  }

  /// Whether its entries are those of another listing and not merely alike: known at once.
  package func hasTheEntries(of other: Listing) -> Bool { table.isIdentical(to: other.table) }

  /// The same content, asked for at another time.
  func confirmed(at time: Timestamp, cost: Span) -> Listing {
    Listing(
      folder: folder, fetchedAt: time, cost: cost, table: table, hiddenKeys: hiddenKeys)
  }

  /// The listing with one entry in place of what it has under the name, or without the name.
  func replacing(_ name: ByteString, with entry: ListingEntry?) -> Listing {
    var changed = ListingTable()
    for index in 0..<table.count where table.name(at: index) != name {
      changed.append(table[index])
    }
    if let entry { changed.append(entry) }
    return Listing(
      folder: folder, fetchedAt: fetchedAt, cost: cost, table: changed.sorted().table,
      hiddenKeys: hiddenKeys, isPartial: isPartial)
  }

  /// The listing with several entries in place of what it has under their names; nil takes a name
  /// out.
  func replacing(_ changes: [ByteString: ListingEntry?]) -> Listing {
    var changed = ListingTable()
    for index in 0..<table.count where changes[table.name(at: index)] == nil {
      changed.append(table[index])
    }
    for case let entry? in changes.values { changed.append(entry) }
    return Listing(
      folder: folder, fetchedAt: fetchedAt, cost: cost, table: changed.sorted().table,
      hiddenKeys: hiddenKeys, isPartial: isPartial)
  }

  /// The names of which another listing of the folder says something else, or nothing.
  package func changes(to other: Listing) -> (changed: [ByteString], added: [ByteString]) {
    table.changes(to: other.table)
  }

  /// The entry at a place; entries are in bytewise order of their names.
  package subscript(_ index: Int) -> ListingEntry { table[index] }

  /// Where a name is, or would be.
  package func place(of name: ByteString) -> (index: Int, isFound: Bool) { table.place(of: name) }

  /// The entry of a name; nil when there is none.
  package func entry(_ name: ByteString) -> ListingEntry? {
    table.index(of: name).map { table[$0] }
  }

  /// Whether the listing says what a name leads to, be it nothing.
  package func tells(of name: ByteString) -> Bool { !isPartial || entry(name) != nil }

  /// How much longer the listing may be believed without asking; zero when that time is over.
  ///
  /// That is `maxAge`, or ten times what it took to get the listing if that is longer. A time of
  /// fetching that lies in the future (the clock was set back) is believed not at all.
  package func freshness(_ maxAge: Span, at now: Timestamp = .now) -> Span {
    isPartial ? .zero : Self.freshness(maxAge, fetchedAt: fetchedAt, cost: cost, at: now)
  }

  /// As if it had cost something else.
  func freshness(_ maxAge: Span, cost: Span) -> Span {
    isPartial ? .zero : Self.freshness(maxAge, fetchedAt: fetchedAt, cost: cost)
  }

  static func freshness(
    _ maxAge: Span, fetchedAt: Timestamp, cost: Span, at now: Timestamp = .now
  ) -> Span {
    let age = now.since(fetchedAt)
    guard age.nanoseconds >= 0 else { return .zero }
    let allowed = max(maxAge, cost * 10)
    return age < allowed ? Span(nanoseconds: allowed.nanoseconds - age.nanoseconds) : .zero
  }
}
