package import Platform

/// What is in one folder, as the store told it at one time.
package struct Listing: Sendable {
  package let folder: FolderName
  /// When the store was asked.
  package let fetchedAt: Timestamp
  /// How long the answer took: a listing that was dear to get is believed longer.
  package let cost: Span
  /// Keys right below the folder that cannot be shown as names in it, whole.
  package let hiddenKeys: [ByteString]
  let table: ListingTable

  init(
    folder: FolderName, fetchedAt: Timestamp, cost: Span, table: ListingTable,
    hiddenKeys: [ByteString]
  ) {
    self.folder = folder
    self.fetchedAt = fetchedAt
    self.cost = cost
    self.table = table
    self.hiddenKeys = hiddenKeys
  }

  package var count: Int { table.count }

  /// The entry at a place; entries are in bytewise order of their names.
  package subscript(_ index: Int) -> ListingEntry { table[index] }

  /// The entry of a name; nil when there is none.
  package func entry(_ name: ByteString) -> ListingEntry? {
    table.index(of: name).map { table[$0] }
  }

  /// How much longer the listing may be believed without asking; zero when that time is over.
  ///
  /// That is `maxAge`, or ten times what it took to get the listing if that is longer. A time of
  /// fetching that lies in the future (the clock was set back) is believed not at all.
  package func freshness(_ maxAge: Span, at now: Timestamp = .now) -> Span {
    let age = now.since(fetchedAt)
    guard age.nanoseconds >= 0 else { return .zero }
    let allowed = max(maxAge, cost * 10)
    return age < allowed ? Span(nanoseconds: allowed.nanoseconds - age.nanoseconds) : .zero
  }
}
