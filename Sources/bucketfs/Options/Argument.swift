import Platform

/// What an option takes, how it is read, and which setting it sets.
enum Argument: Sendable {
  typealias Path<Value> = any WritableKeyPath<Settings, Value> & Sendable

  /// Nothing, or `yes` and `no`.
  case flag(Path<Bool>)
  /// A size, or `unlimited`; what lies below `least` counts as `least`.
  case size(Path<Int64?>, least: Int64)
  /// A size above zero.
  case bytes(Path<Int64>, range: ClosedRange<Int64>)
  case span(Path<Span>, zero: Bool)
  /// A whole number.
  case count(Path<Int64>, range: ClosedRange<Int64>)
  case text(Path<String>)
  /// A path, made absolute from the working directory; `~/` is the home folder.
  case path(Path<String>)
  case secret(Path<Secret>)
  case choice(Path<String>, [String])
  /// A user's name or number.
  case user(Path<UInt32?>)
  /// A group's name or number.
  case group(Path<UInt32?>)
  case octal(Path<UInt32>)
  /// A header's value, of the header that the option's name ends in.
  case header(name: String)

  /// Why a value was refused.
  struct Refusal: Error {
    let why: String
  }

  /// The argument's name in the help; nil where there is none.
  var placeholder: String? {
    switch self {
    case .flag: nil
    case .size, .bytes: "SIZE"
    case .span: "TIME"
    case .count: "NUMBER"
    case .text, .secret: "TEXT"
    case .path: "PATH"
    case .choice(_, let words): words.joined(separator: "|")
    case .user: "USER"
    case .group: "GROUP"
    case .octal: "OCTAL"
    case .header: "VALUE"
    }
  }

  /// Reads a value and sets the setting.
  func apply(_ value: String?, to settings: inout Settings) throws(Refusal) {
    if case .flag(let path) = self {
      settings[keyPath: path] = try Self.yesOrNo(value)
      return
    }
    guard let value, !value.isEmpty else { throw Refusal(why: "a value is missing") }
    switch self {
    case .flag: break
    case .size(let path, let least):
      settings[keyPath: path] =
        value == "unlimited" ? nil : max(least, try Quantity.bytes(value))
    case .bytes(let path, let range):
      let bytes = try Quantity.bytes(value)
      guard range.contains(bytes) else {
        throw Refusal(
          why:
            "\(value) is not between \(Quantity.text(bytes: range.lowerBound)) and \(Quantity.text(bytes: range.upperBound))"
        )
      }
      settings[keyPath: path] = bytes
    case .span(let path, let zero):
      let span = try Quantity.span(value)
      guard zero || span > .zero else { throw Refusal(why: "it must be more than nothing") }
      settings[keyPath: path] = span
    case .count(let path, let range):
      guard let number = Int64(value), range.contains(number) else {
        throw Refusal(
          why: "\(value) is not a number from \(range.lowerBound) to \(range.upperBound)")
      }
      settings[keyPath: path] = number
    case .text(let path): settings[keyPath: path] = value
    case .path(let path): settings[keyPath: path] = try Self.absolute(value)
    case .secret(let path):
      settings[keyPath: path] = Secret(try Self.headerValue(value))
    case .choice(let path, let words):
      guard words.contains(value) else {
        throw Refusal(why: "\(value) is none of \(words.joined(separator: ", "))")
      }
      settings[keyPath: path] = value
    case .user(let path): settings[keyPath: path] = try Self.identity(value, Account.user(named:))
    case .group(let path): settings[keyPath: path] = try Self.identity(value, Account.group(named:))
    case .octal(let path):
      guard let number = UInt32(value, radix: 8), number <= 0o777 else {
        throw Refusal(why: "\(value) is not an octal number up to 777")
      }
      settings[keyPath: path] = number
    case .header(let name):
      settings.headers.append(
        Settings.Header(name: name, value: Secret(try Self.headerValue(value))))
    }
  }

  private static func yesOrNo(_ value: String?) throws(Refusal) -> Bool {
    switch value {
    case nil, "yes", "true", "on", "1": true
    case "no", "false", "off", "0": false
    default: throw Refusal(why: "it takes yes or no")
    }
  }

  private static func absolute(_ value: String) throws(Refusal) -> String {
    if value == "~" || value.hasPrefix("~/") { return Places.home + value.dropFirst() }
    guard let path = Places.absolute(value) else {
      throw Refusal(why: "the working directory is gone, and \(value) is relative")
    }
    return path
  }

  /// Text that may stand in a header: a line break in it would begin another header.
  private static func headerValue(_ value: String) throws(Refusal) -> String {
    guard value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else {
      throw Refusal(why: "it holds a control character")
    }
    return value
  }

  private static func identity(_ value: String, _ named: (String) -> UInt32?) throws(Refusal)
    -> UInt32
  {
    if let number = UInt32(value), number != .max { return number }
    guard let number = named(value) else { throw Refusal(why: "\(value) is not known here") }
    return number
  }
}
