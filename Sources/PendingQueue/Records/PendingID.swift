/// The name of one record, made on this device: sortable by time, never used twice in a queue.
package struct PendingID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// Nanoseconds since 1970, made to grow strictly even where the clock does not.
  package let value: UInt64

  init(value: UInt64) {
    self.value = value
  }

  /// Reads the sixteen lower-case hexadecimal digits of `description`; nil for anything else.
  package init?(_ text: some StringProtocol) {
    let digits = text.utf8
    guard digits.count == 16,
      digits.allSatisfy({ ($0 >= 0x30 && $0 <= 0x39) || ($0 >= 0x61 && $0 <= 0x66) }),
      let value = UInt64(text, radix: 16)
    else { return nil }
    self.value = value
  }

  package var description: String {
    let hex = String(value, radix: 16)
    return String(repeating: "0", count: 16 - hex.count) + hex
  }

  package static func < (left: PendingID, right: PendingID) -> Bool { left.value < right.value }
}
