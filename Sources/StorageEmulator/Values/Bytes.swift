import Glibc

/// Comparing and searching bytes with the C library, which is fast in debug builds too.
enum Bytes {
  /// Where `mark` begins at or after `start`; nil when it does not occur.
  static func find(_ mark: [UInt8], in bytes: [UInt8], from start: Int = 0) -> Int? {
    guard let first = mark.first else { return start }
    return bytes.withUnsafeBytes { raw in
      guard let base = raw.baseAddress else { return nil }
      var place = start
      while place + mark.count <= raw.count {
        let space = raw.count - mark.count + 1 - place
        guard let found = memchr(base + place, CInt(first), space) else { return nil }
        place = UnsafeRawPointer(found) - base
        if memcmp(base + place, mark, mark.count) == 0 { return place }
        place += 1
      }
      return nil
    }
  }

  /// Less than, equal to or greater than zero, as memcmp(3) and the C collation order.
  static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int {
    let count = min(left.count, right.count)
    let order = left.withUnsafeBytes { left in
      right.withUnsafeBytes { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return CInt(0) }
        return memcmp(left, right, count)
      }
    }
    return order == 0 ? left.count - right.count : Int(order)
  }

  /// ASCII letters in lower case; every other byte stays.
  static func lowered(_ bytes: [UInt8]) -> [UInt8] {
    bytes.map { (65...90).contains($0) ? $0 | 32 : $0 }
  }
}
