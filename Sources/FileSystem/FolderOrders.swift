import FileCache
import Platform

/// The orders in which a folder's files may be opened: that of their names, in which they are
/// listed, and that of their inodes, into which cp(1) brings them.
///
/// A value; its owner guards it.
struct FolderOrders: Sendable {
  /// Ends what is fetched ahead in the folder.
  let stop = Cancellation()
  private(set) var last = Instant.now
  private let listing: Listing
  private var byName = OpenRun()
  private var byInode = OpenRun()
  private var inodes: InodeOrder?
  /// The first places that were opened, until it is clear whether they follow the names.
  private var first: [Int] = []

  /// Folders of more files are read ahead in the order of names alone.
  private static let sortedMost = 20_000

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
    if !names.isEmpty { return names.map { listing[$0] } }
    guard byName.length < 3, listing.count <= Self.sortedMost else { return [] }
    if inodes == nil {
      first.append(place)
      guard first.count == 3 else { return [] }
      let order = InodeOrder(listing, inode: inode)
      inodes = order
      for place in first.dropLast() { _ = byInode.opened(order.ranks[place], of: listing.count) }
    }
    guard let inodes else { return [] }
    return byInode.opened(inodes.ranks[place], of: listing.count).map { listing[inodes.places[$0]] }
  }

  /// Whether files are opened in one of the orders.
  var isInOrder: Bool { byName.length >= 3 || byInode.length >= 3 }
}

/// A folder's entries by the number of their inode.
private struct InodeOrder: Sendable {
  /// The entries' places in the listing, by inode.
  let places: [Int]
  /// For each place in the listing, how many inodes are smaller.
  let ranks: [Int]

  init(_ listing: Listing, inode: (ListingEntry) -> UInt64?) {
    let numbers = (0..<listing.count).map { inode(listing[$0]) ?? .max }
    let places = numbers.indices.sorted { numbers[$0] < numbers[$1] }
    var ranks = [Int](repeating: 0, count: places.count)
    for (rank, place) in places.enumerated() { ranks[place] = rank }
    self.places = places
    self.ranks = ranks
  }
}
