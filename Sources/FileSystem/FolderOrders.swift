import FileCache
import Platform

/// The orders in which a folder's files may be opened: that of their names, in which they are
/// listed; that of their inodes, into which cp(1) brings them; and the one people expect, in which
/// `2` comes before `10`, and `a` beside `A`.
///
/// A value; its owner guards it.
struct FolderOrders: Sendable {
  /// Ends what is fetched ahead in the folder.
  let stop = Cancellation()
  private(set) var last = Instant.now
  private let listing: Listing
  private var byName = OpenRun()
  /// The others, made when it is clear that the names are not followed.
  private var others: [(order: SortedOrder, run: OpenRun)]?
  /// The first places that were opened, until then.
  private var first: [Int] = []

  /// Folders of more files are read ahead in the order of names alone.
  private static let sortedMost = 4_000

  init(_ listing: Listing) {
    self.listing = listing
  }

  /// Whether it was made of this very listing, as far as its entries go.
  func isOf(_ other: Listing) -> Bool { listing.count == other.count }

  /// Notes that a file is opened.
  ///
  /// - Parameter inode: gives the number of an entry; nil for one that has none.
  /// - Returns: the entries of which the contents are wanted next.
  mutating func opened(_ name: ByteString, inode: (ListingEntry) -> UInt64?) -> [ListingEntry] {
    last = .now
    let (place, isFound) = listing.place(of: name)
    guard isFound else { return [] }
    let names = byName.opened(place, of: listing.count)
    if byName.isInOrder { return names.map { listing[$0] } }
    guard listing.count <= Self.sortedMost else { return [] }
    if others == nil {
      first.append(place)
      guard first.count == 3 else { return [] }
      makeOthers(inode)
    }
    var wanted: [ListingEntry] = []
    for index in (others ?? []).indices {
      wanted += open(place, in: index).map { listing[$0] }
    }
    return wanted
  }

  /// Whether files are opened in one of the orders.
  var isInOrder: Bool { byName.isInOrder || (others ?? []).contains { $0.run.isInOrder } }

  private mutating func makeOthers(_ inode: (ListingEntry) -> UInt64?) {
    let entries = (0..<listing.count).map { listing[$0] }
    let inodes = entries.map { inode($0) ?? .max }
    let names = entries.map { NaturalName($0.name) }
    others = [
      SortedOrder(entries.count) { inodes[$0] < inodes[$1] },
      SortedOrder(entries.count) { names[$0] < names[$1] },
    ].map { ($0, OpenRun()) }
    for place in first.dropLast() {
      for index in 0..<2 { _ = open(place, in: index) }
    }
  }

  /// Notes an open in one of the other orders.
  ///
  /// - Returns: the places in the listing that are wanted next.
  private mutating func open(_ place: Int, in index: Int) -> [Int] {
    guard let order = others?[index].order else { return [] }
    let ranks = others?[index].run.opened(order.ranks[place], of: listing.count) ?? 0..<0
    return ranks.map { order.places[$0] }
  }
}

/// A folder's entries in an order that is not that of the listing.
private struct SortedOrder: Sendable {
  /// The entries' places in the listing, in this order.
  let places: [Int]
  /// For each place in the listing, how many come before it.
  let ranks: [Int]

  init(_ count: Int, _ isBefore: (Int, Int) -> Bool) {
    places = (0..<count).sorted(by: isBefore)
    var ranks = [Int](repeating: 0, count: count)
    for (rank, place) in places.enumerated() { ranks[place] = rank }
    self.ranks = ranks
  }
}
