/// Whether the files of a folder are opened in an order, and which come next.
///
/// A program that reads a folder opens its files in the order that it was told them, or in one that
/// it made of them; programs with several threads open neighbours the other way round. A value; its
/// owner guards it.
struct OpenRun: Sendable {
  /// The most files that are fetched before they are opened.
  static let mostAhead = 16
  /// How far a file may lie from the foremost one to count as its neighbour.
  private static let reach = 4

  /// The foremost place that was opened.
  private var front: Int?
  /// How many files were opened in order.
  private(set) var length = 0
  /// Whether they are opened in order.
  var isInOrder: Bool { length >= 3 }
  /// The first place that was not proposed yet.
  private var next = 0

  /// Notes that the file at a place is opened.
  ///
  /// - Parameter count: how many places there are.
  /// - Returns: the places to fetch now, each proposed once: none before three files were opened in
  ///   order, then more with every further one.
  mutating func opened(_ place: Int, of count: Int) -> Range<Int> {
    if let front, place <= front, place > front - Self.mostAhead { return 0..<0 }
    let isNext = front.map { place > $0 && place - $0 <= Self.reach } ?? false
    length = isNext ? length + 1 : 1
    front = place
    guard isInOrder else {
      next = place + 1
      return 0..<0
    }
    let depth = min(Self.mostAhead, 1 << min(length - 2, 5))
    let start = max(next, place + 1)
    let end = min(count, place + 1 + depth)
    guard start < end else { return 0..<0 }
    next = end
    return start..<end
  }
}
