/// Why a record was not stored at its last try.
package struct PendingFailure: Hashable, Sendable {
  /// A stable word for programs: a `StoreError.Kind`'s raw value, or one of the constants below.
  package var kind: String
  /// A sentence for people, with the store's own words where it had any.
  package var reason: String
  /// Whether a new try may succeed without anybody changing anything.
  package var isRetryable: Bool

  package init(kind: String, reason: String, isRetryable: Bool) {
    self.kind = kind
    self.reason = reason
    self.isRetryable = isRetryable
  }

  /// Its writer ended before it closed the file.
  package static let interrupted = "interrupted"
  /// Another writer changed the object first.
  package static let conflict = "conflict"
  /// The bytes on this device are not those that were written, or are gone.
  package static let damaged = "damaged"
  /// This device had no room for all that its writer wrote, who was told so.
  package static let noRoom = "no-room"
  /// This device could not keep the bytes durably.
  package static let device = "device"

  /// Whether the bytes are not all that their writer meant to write.
  package var isOfParts: Bool { [Self.interrupted, Self.damaged, Self.noRoom].contains(kind) }
}
