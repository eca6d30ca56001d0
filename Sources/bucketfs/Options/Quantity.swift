import Platform

/// Sizes and times as people write them.
enum Quantity {
  private static let sizeUnits: [(names: Set<String>, factor: Double)] = [
    (["", "B"], 1),
    (["K", "KB", "KIB"], 1024),
    (["M", "MB", "MIB"], 1_048_576),
    (["G", "GB", "GIB"], 1_073_741_824),
    (["T", "TB", "TIB"], 1_099_511_627_776),
  ]

  private static let spanUnits: [(names: Set<String>, factor: Double)] = [
    (["", "S"], 1),
    (["MS"], 0.001),
    (["M", "MIN"], 60),
    (["H"], 3600),
    (["D"], 86400),
  ]

  /// Bytes: a number and K, M, G or T (powers of 1024; `KiB` and `KB` are the same as `K`).
  static func bytes(_ text: String) throws(Argument.Refusal) -> Int64 {
    let number = try read(text, sizeUnits, "a size such as 256M or 1.5G")
    guard number.magnitude < 9e18 else { throw Argument.Refusal(why: "\(text) is too large") }
    return Int64(number)
  }

  /// A time: a number and ms, s, m, h or d; seconds where no unit stands.
  static func span(_ text: String) throws(Argument.Refusal) -> Span {
    let seconds = try read(text, spanUnits, "a time such as 10s, 500ms or 5m")
    guard seconds >= 0 else { throw Argument.Refusal(why: "\(text) is below zero") }
    guard seconds <= 3_153_600_000 else { throw Argument.Refusal(why: "\(text) is too long") }
    return .seconds(seconds)
  }

  /// Bytes for people: `256.0 MiB`, and whole numbers without a fraction.
  static func text(bytes: Int64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"]
    var value = Double(bytes)
    var unit = 0
    while value.magnitude >= 1024, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    let tenths = (value * 10).rounded()
    let whole = Int64(tenths / 10)
    let rest = Int64(tenths.magnitude) % 10
    return rest == 0 ? "\(whole) \(units[unit])" : "\(whole).\(rest) \(units[unit])"
  }

  private static func read(
    _ text: String, _ units: [(names: Set<String>, factor: Double)], _ wanted: String
  ) throws(Argument.Refusal) -> Double {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == "." || $0 == "-") }
    let name = text.dropFirst(digits.count).uppercased()
    guard let number = Double(digits), let unit = units.first(where: { $0.names.contains(name) })
    else { throw Argument.Refusal(why: "\(text) is not \(wanted)") }
    return number * unit.factor
  }
}
