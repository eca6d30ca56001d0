import FileCache
import Platform

/// A listing with what is pending, or was just changed, put into it: each name once, in order.
struct MergedListing: Sendable {
  let listing: Listing
  /// In order of their names; nil of an entry hides the name.
  private let changes: [TreeEntry]
  /// Where each line is: at a place of the listing, or, below zero, of the changes. Nil for the
  /// listing as it is.
  private let order: [Int32]?

  /// - Parameter changes: by name; nil for a name that is not there any more.
  init(_ listing: Listing, changes: [ByteString: TreeEntry?]) {
    self.listing = listing
    guard !changes.isEmpty else {
      self.changes = []
      order = nil
      return
    }
    var kept: [TreeEntry] = []
    var order: [Int32] = []
    order.reserveCapacity(listing.count + changes.count)
    var next = 0
    for (name, entry) in changes.sorted(by: { $0.key < $1.key }) {
      let place = listing.place(of: name)
      order += (next..<place.index).map(Int32.init(truncatingIfNeeded:))
      next = place.isFound ? place.index + 1 : place.index
      guard let entry else { continue }
      kept.append(entry)
      order.append(-Int32(truncatingIfNeeded: kept.count))
    }
    order += (next..<listing.count).map(Int32.init(truncatingIfNeeded:))
    self.changes = kept
    self.order = order
  }

  var count: Int { order?.count ?? listing.count }

  /// Whether a line is the listing's own, and nothing was put in its place.
  func isOfListing(_ index: Int) -> Bool { order.map { $0[index] >= 0 } ?? true }

  subscript(_ index: Int) -> TreeEntry {
    guard let order else { return TreeEntry(listing[index]) }
    let place = Int(order[index])
    return place < 0 ? changes[-place - 1] : TreeEntry(listing[place])
  }
}
