import Platform

/// The listings that are in memory, the least recently used going first.
///
/// A value; its owner guards it.
struct ListingMemory: Sendable {
  private struct Slot {
    var listing: Listing
    /// A listing that is too old is nevertheless answered with until then, since the store could
    /// not be asked a moment ago.
    var standsInUntil: Instant?
    var used: UInt64
    /// Tells what a folder had at one time from what it had at another.
    let revision: UInt64
    var bytes: Int64
  }

  private var slots: [FolderName: Slot] = [:]
  private var bytes: Int64 = 0
  private var clock: UInt64 = 0
  private let limit: Int64

  /// - Parameter limit: bytes that may be held, the newest listing aside.
  init(limit: Int64) {
    self.limit = limit
  }

  mutating func listing(_ folder: FolderName) -> Listing? {
    guard slots[folder] != nil else { return nil }
    clock += 1
    slots[folder]?.used = clock
    return slots[folder]?.listing
  }

  /// A number that changes whenever a folder's listing does; nil when there is none.
  func revision(_ folder: FolderName) -> UInt64? { slots[folder]?.revision }

  /// How long a listing stands in for one that could not be had; zero when it does not.
  func standIn(_ folder: FolderName, at now: Instant) -> Span {
    guard let until = slots[folder]?.standsInUntil, until > now else { return .zero }
    return until.since(now)
  }

  mutating func setStandIn(_ folder: FolderName, until: Instant) {
    slots[folder]?.standsInUntil = until
  }

  mutating func endStandIns() {
    for folder in slots.keys { slots[folder]?.standsInUntil = nil }
  }

  mutating func set(_ listing: Listing) {
    remove(listing.folder)
    clock += 1
    let size = listing.byteCount
    slots[listing.folder] = Slot(
      listing: listing, standsInUntil: nil, used: clock, revision: clock, bytes: size)
    bytes += size
    if bytes > limit { shrink(keeping: listing.folder) }
  }

  /// Puts a changed listing in place of the one that it was made of.
  mutating func update(_ listing: Listing) {
    let standsInUntil = slots[listing.folder]?.standsInUntil
    set(listing)
    slots[listing.folder]?.standsInUntil = standsInUntil
  }

  mutating func setCost(_ cost: Span, below root: FolderName, since start: Timestamp) {
    for (folder, slot) in slots where root.contains(folder) && slot.listing.fetchedAt >= start {
      slots[folder]?.listing = slot.listing.confirmed(at: slot.listing.fetchedAt, cost: cost)
    }
  }

  mutating func remove(_ folder: FolderName) {
    if let old = slots.removeValue(forKey: folder) { bytes -= old.bytes }
  }

  mutating func removeTree(_ folder: FolderName) {
    for name in slots.keys where folder.contains(name) { remove(name) }
  }

  /// Goes a fifth below the bound, so that the search for the oldest is not made for each.
  private mutating func shrink(keeping kept: FolderName) {
    for (folder, _) in slots.sorted(by: { $0.value.used < $1.value.used }) {
      if bytes <= limit - limit / 5 { return }
      if folder != kept { remove(folder) }
    }
  }
}
