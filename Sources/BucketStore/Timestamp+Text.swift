package import Platform

/// The two spellings of a moment that stores use. What is not exactly one of them is nil.
extension Timestamp {
  /// A moment as in JSON: `2026-04-27T10:30:57.123Z`, by ISO 8601.
  ///
  /// Seconds may have up to nine digits after the point; the zone is `Z` or `±HH[:][MM]`.
  package init?(iso8601 text: String) {
    var reader = DigitReader(text)
    guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2),
      reader.skip("-"), let day = reader.number(2), reader.skip("T") || reader.skip(" "),
      let hour = reader.number(2), reader.skip(":"), let minute = reader.number(2),
      reader.skip(":"), let second = reader.number(2), let fraction = reader.fraction(),
      let zone = reader.zone(), reader.isAtEnd
    else { return nil }
    self.init(
      year: year, month: month, day: day, hour: hour, minute: minute, second: second,
      nanoseconds: fraction, zone: zone)
  }

  /// A moment as in a header: `Mon, 27 Apr 2026 10:30:57 GMT`, by RFC 9110.
  package init?(httpDate text: String) {
    guard let comma = text.utf8.firstIndex(of: UInt8(ascii: ",")) else { return nil }
    var reader = DigitReader(String(text[text.index(after: comma)...]))
    guard reader.skip(" "), let day = reader.number(2), reader.skip(" "),
      let month = reader.month(), reader.skip(" "), let year = reader.number(4),
      reader.skip(" "), let hour = reader.number(2), reader.skip(":"),
      let minute = reader.number(2), reader.skip(":"), let second = reader.number(2),
      reader.skip(" "), reader.skip("G"), reader.skip("M"), reader.skip("T"), reader.isAtEnd
    else { return nil }
    self.init(
      year: year, month: month, day: day, hour: hour, minute: minute, second: second,
      nanoseconds: 0, zone: 0)
  }

  /// Refuses fields out of range, and years that 64 bits of nanoseconds cannot hold.
  private init?(
    year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64,
    nanoseconds: Int64, zone: Int64
  ) {
    guard (1678...2261).contains(year), (1...12).contains(month),
      (1...Self.length(of: month, year)).contains(day), hour < 24, minute < 60, second <= 60
    else { return nil }
    let seconds = Self.days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
    self.init(seconds: seconds - zone, nanoseconds: nanoseconds)
  }

  private static func length(of month: Int64, _ year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Days since 1970-01-01 in the Gregorian calendar, counted in years that begin in March.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = month > 2 ? year : year - 1
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
  }
}

/// Reads a text of digits and signs from left to right.
private struct DigitReader {
  private var rest: Substring.UTF8View

  init(_ text: String) {
    rest = Substring(text).utf8
  }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func skip(_ sign: Unicode.Scalar) -> Bool {
    guard let first = rest.first, UInt32(first) == sign.value else { return false }
    rest.removeFirst()
    return true
  }

  /// A number of exactly so many digits.
  mutating func number(_ digits: Int) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<digits {
      guard let digit = self.digit() else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  /// What follows a decimal point, in billionths; zero when there is none.
  mutating func fraction() -> Int64? {
    guard skip(".") else { return 0 }
    var value: Int64 = 0
    var unit: Int64 = 100_000_000
    guard let first = digit() else { return nil }
    value = first * unit
    while let next = digit() {
      unit /= 10
      guard unit > 0 else { return nil }
      value += next * unit
    }
    return value
  }

  /// Seconds east of Greenwich.
  mutating func zone() -> Int64? {
    if skip("Z") { return 0 }
    let sign: Int64 = skip("+") ? 1 : skip("-") ? -1 : 0
    guard sign != 0, let hours = number(2), hours < 24 else { return nil }
    _ = skip(":")  // The colon is optional.
    guard !isAtEnd else { return sign * hours * 3_600 }
    guard let minutes = number(2), minutes < 60 else { return nil }
    return sign * (hours * 3_600 + minutes * 60)
  }

  /// The number of an English month's first three letters.
  mutating func month() -> Int64? {
    let letters = Array(rest.prefix(3))
    guard letters.count == 3, let index = Self.months.firstIndex(of: letters) else { return nil }
    rest.removeFirst(3)
    return Int64(index + 1)
  }

  private mutating func digit() -> Int64? {
    guard let first = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
      return nil
    }
    rest.removeFirst()
    return Int64(first - UInt8(ascii: "0"))
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ].map { Array($0.utf8) }
}
