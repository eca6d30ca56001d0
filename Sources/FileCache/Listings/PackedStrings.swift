import Glibc
import Platform

/// Many short byte strings end to end: one allocation instead of one each.
///
/// A folder of a million names costs their bytes and eight more each; as separate arrays it would
/// cost four times that.
struct PackedStrings: Sendable, Equatable {
  private var bytes: [UInt8] = []
  private var ends: [Int] = []

  var count: Int { ends.count }
  var byteCount: Int { bytes.count }

  mutating func append(_ string: some Sequence<UInt8>) {
    bytes.append(contentsOf: string)
    ends.append(bytes.count)
  }

  subscript(_ index: Int) -> ArraySlice<UInt8> { bytes[range(index)] }

  private func range(_ index: Int) -> Range<Int> {
    (index == 0 ? 0 : ends[index - 1])..<ends[index]
  }

  /// Compares two of the strings bytewise (memcmp(3), the shorter first).
  func compare(_ left: Int, _ right: Int) -> Int {
    bytes.withUnsafeBufferPointer { buffer in
      Self.compare(
        UnsafeBufferPointer(rebasing: buffer[range(left)]),
        UnsafeBufferPointer(rebasing: buffer[range(right)]))
    }
  }

  /// Compares one of the strings with one of others.
  func compare(_ left: Int, _ right: Int, of other: PackedStrings) -> Int {
    bytes.withUnsafeBufferPointer { buffer in
      other.bytes.withUnsafeBufferPointer { otherBuffer in
        Self.compare(
          UnsafeBufferPointer(rebasing: buffer[range(left)]),
          UnsafeBufferPointer(rebasing: otherBuffer[other.range(right)]))
      }
    }
  }

  /// Where a string is, in strings that are in bytewise order; nil when it is none of them.
  func search(_ wanted: ByteString) -> Int? {
    let place = place(of: wanted)
    return place.isFound ? place.index : nil
  }

  /// Where a string is, or would be, in strings that are in bytewise order.
  func place(of wanted: ByteString) -> (index: Int, isFound: Bool) {
    bytes.withUnsafeBufferPointer { buffer in
      wanted.bytes.withUnsafeBufferPointer { wanted in
        var low = 0
        var high = ends.count
        while low < high {
          let middle = (low + high) / 2
          let order = Self.compare(
            UnsafeBufferPointer(rebasing: buffer[range(middle)]), wanted)
          if order == 0 { return (middle, true) }
          if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
      }
    }
  }

  private static func compare(
    _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>
  ) -> Int {
    let common = min(left.count, right.count)
    if common > 0, let leftStart = left.baseAddress, let rightStart = right.baseAddress {
      let order = memcmp(leftStart, rightStart, common)
      if order != 0 { return Int(order) }
    }
    return left.count - right.count
  }
}
