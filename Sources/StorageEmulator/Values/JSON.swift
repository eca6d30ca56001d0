/// A JSON value whose object keeps the order of its members, as the server's answers do.
///
/// Foundation's coders would not do: their objects forget the order, both of what is written and of
/// what is read to be given back, and they do not tell at which byte a text is no JSON.
package indirect enum JSON: Hashable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([Member])

  /// One name and value of an object.
  package struct Member: Hashable, Sendable {
    /// Not escaped.
    package let name: String
    /// Any value, another object included.
    package let value: JSON

    package init(_ name: String, _ value: JSON) {
      self.name = name
      self.value = value
    }
  }

  /// The value of an object's member; nil when this is no object or has no such member.
  package subscript(_ name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// The value of a string; nil for any other kind.
  package var text: String? {
    guard case .string(let value) = self else { return nil }
    return value
  }

  /// The value of a boolean; nil for any other kind.
  package var flag: Bool? {
    guard case .bool(let value) = self else { return nil }
    return value
  }

  /// A whole number; also one written with a fraction of zero.
  package var whole: Int64? {
    switch self {
    case .integer(let value): value
    case .number(let value): Int64(exactly: value)
    default: nil
    }
  }

  /// The values of an array; nil for any other kind.
  package var items: [JSON]? {
    guard case .array(let value) = self else { return nil }
    return value
  }

  /// Whether it is an object, be it empty.
  package var isObject: Bool {
    guard case .object = self else { return false }
    return true
  }

  /// A string, or null for nil.
  package static func text(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
}

extension JSON: ExpressibleByDictionaryLiteral {
  package init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }
}

extension JSON: ExpressibleByArrayLiteral {
  package init(arrayLiteral elements: JSON...) {
    self = .array(elements)
  }
}

extension JSON: ExpressibleByStringLiteral {
  package init(stringLiteral value: String) {
    self = .string(value)
  }
}

extension JSON: ExpressibleByBooleanLiteral {
  package init(booleanLiteral value: Bool) {
    self = .bool(value)
  }
}

extension JSON: ExpressibleByIntegerLiteral {
  package init(integerLiteral value: Int64) {
    self = .integer(value)
  }
}
