import Platform

/// The keys of one bucket in the order of their bytes, for scans from any place.
///
/// New keys wait until the next scan sorts them in; a removed key stays in place until the sort
/// and is passed over by whoever looks the row up. 100,000 keys in order cost one append each.
struct KeyIndex: Sendable {
  /// How a key is placed: itself, or with its ASCII letters in lower case, as list version 1 does.
  enum Order: Sendable {
    case bytes
    case lowered
  }

  struct Entry: Sendable {
    /// What the entry is placed by.
    let place: [UInt8]
    let key: ByteString
  }

  private let order: Order
  private(set) var entries: [Entry] = []
  private var waiting: [Entry] = []

  init(_ order: Order) {
    self.order = order
  }

  mutating func insert(_ key: ByteString) {
    let entry = Entry(place: order == .bytes ? key.bytes : Bytes.lowered(key.bytes), key: key)
    if waiting.isEmpty, entries.last.map({ Self.precedes($0, entry) }) ?? true {
      entries.append(entry)
    } else {
      waiting.append(entry)
    }
  }

  /// Brings the entries in order; call it before a scan.
  ///
  /// - Parameter isPresent: whether a key still names an object.
  mutating func sort(isPresent: (ByteString) -> Bool) {
    guard !waiting.isEmpty else { return }
    waiting.sort(by: Self.precedes)
    var merged: [Entry] = []
    merged.reserveCapacity(entries.count + waiting.count)
    var old = 0
    for entry in waiting {
      while old < entries.count, Self.precedes(entries[old], entry) {
        if isPresent(entries[old].key) { merged.append(entries[old]) }
        old += 1
      }
      if old < entries.count, !Self.precedes(entry, entries[old]) { old += 1 }
      if let last = merged.last, !Self.precedes(last, entry) { continue }
      if isPresent(entry.key) { merged.append(entry) }
    }
    merged.append(contentsOf: entries[old...])
    entries = merged
    waiting = []
  }

  /// The first position whose place is not less than `bound`.
  func position(of bound: [UInt8]) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if Bytes.compare(entries[middle].place, bound) < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private static func precedes(_ left: Entry, _ right: Entry) -> Bool {
    let order = Bytes.compare(left.place, right.place)
    return order == 0 ? Bytes.compare(left.key.bytes, right.key.bytes) < 0 : order < 0
  }
}
