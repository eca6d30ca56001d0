package import Platform

/// A value bound to a parameter of a statement.
package enum Value: Sendable, Equatable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])

  /// A number, or null.
  package static func integer(orNull value: Int64?) -> Value { value.map(Value.integer) ?? .null }

  /// A text, or null.
  package static func text(orNull value: String?) -> Value { value.map(Value.text) ?? .null }

  /// A name, as its bytes: it compares bytewise and need not be UTF-8.
  package static func name(_ value: ByteString) -> Value { .blob(value.bytes) }

  /// A moment as nanoseconds since 1970.
  package static func time(_ value: Timestamp) -> Value { .integer(value.nanoseconds) }

  /// A moment as nanoseconds since 1970, or null.
  package static func time(orNull value: Timestamp?) -> Value { value.map(Value.time) ?? .null }

  /// A flag as 0 or 1.
  package static func flag(_ value: Bool) -> Value { .integer(value ? 1 : 0) }
}
