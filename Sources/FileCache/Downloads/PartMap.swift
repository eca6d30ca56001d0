/// Which bytes of an object are there: ranges in order that neither overlap nor touch.
struct PartMap: Equatable, Sendable {
  private(set) var ranges: [Range<Int64>] = []

  init() {}

  /// How many bytes are there.
  var count: Int64 { ranges.reduce(0) { $0 &+ ($1.upperBound &- $1.lowerBound) } }

  mutating func insert(_ range: Range<Int64>) {
    guard !range.isEmpty else { return }
    // Almost always the bytes follow the last ones of a range that is there.
    let first = firstIndex(endingAtOrAfter: range.lowerBound)
    var merged = range
    var end = first
    while end < ranges.count, ranges[end].lowerBound <= range.upperBound {
      merged =
        min(
          merged.lowerBound, ranges[end].lowerBound)..<max(
          merged.upperBound, ranges[end].upperBound)
      end += 1
    }
    ranges.replaceSubrange(first..<end, with: [merged])
  }

  func contains(_ range: Range<Int64>) -> Bool {
    if range.isEmpty { return true }
    let index = firstIndex(endingAtOrAfter: range.upperBound)
    return index < ranges.count && ranges[index].lowerBound <= range.lowerBound
  }

  /// The pieces of a range that are not there, in order.
  func missing(in range: Range<Int64>) -> [Range<Int64>] {
    var result: [Range<Int64>] = []
    var position = range.lowerBound
    var index = firstIndex(endingAtOrAfter: range.lowerBound)
    while position < range.upperBound, index < ranges.count,
      ranges[index].lowerBound < range.upperBound
    {
      if ranges[index].lowerBound > position {
        result.append(position..<ranges[index].lowerBound)
      }
      position = max(position, ranges[index].upperBound)
      index += 1
    }
    if position < range.upperBound { result.append(position..<range.upperBound) }
    return result
  }

  /// Whether all bytes of an object of that size are there.
  func isWhole(_ size: Int64) -> Bool { contains(0..<size) }

  private func firstIndex(endingAtOrAfter position: Int64) -> Int {
    var low = 0
    var high = ranges.count
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound < position { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension PartMap {
  /// Pairs of 64-bit little-endian numbers: first byte and end of each range.
  var encoded: [UInt8] {
    ranges.flatMap { range in
      [range.lowerBound, range.upperBound].flatMap { number in
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
      }
    }
  }

  /// Reads what `encoded` gave.
  ///
  /// - Returns: nil when it is not that, or names bytes beyond the size.
  init?(encoded bytes: [UInt8], size: Int64) {
    guard bytes.count % 16 == 0 else { return nil }
    let numbers = stride(from: 0, to: bytes.count, by: 8).map { start in
      bytes[start..<(start + 8)].reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
    }
    var previous: Int64 = -1
    for index in stride(from: 0, to: numbers.count, by: 2) {
      let (lower, upper) = (numbers[index], numbers[index + 1])
      guard lower > previous, lower >= 0, upper > lower, upper <= size else { return nil }
      insert(lower..<upper)
      previous = upper
    }
  }
}
