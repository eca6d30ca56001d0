import Glibc
import Platform

/// The two ways in which the server writes a moment.
enum TimeText {
  /// ISO 8601 in UTC with milliseconds: `2026-04-27T10:30:57.123Z`.
  static func iso(_ time: Timestamp) -> String {
    let parts = fields(time)
    var text = Array("0000-00-00T00:00:00.000Z".utf8)
    func put(_ number: Int, _ last: Int) {
      var (number, place) = (number, last)
      while number > 0, text[place] == UInt8(ascii: "0") {
        text[place] += UInt8(number % 10)
        number /= 10
        place -= 1
        if place < 0 { return }
      }
    }
    put(Int(parts.tm_year) + 1900, 3)
    put(Int(parts.tm_mon) + 1, 6)
    put(Int(parts.tm_mday), 9)
    put(Int(parts.tm_hour), 12)
    put(Int(parts.tm_min), 15)
    put(Int(parts.tm_sec), 18)
    put(time.timespec.tv_nsec / 1_000_000, 22)
    return String(decoding: text, as: UTF8.self)
  }

  /// RFC 1123 in UTC: `Mon, 27 Apr 2026 10:30:57 GMT`.
  static func http(_ time: Timestamp) -> String {
    let parts = fields(time)
    return "\(days[Int(parts.tm_wday)]), \(pad(Int(parts.tm_mday), 2)) "
      + "\(months[Int(parts.tm_mon)]) \(pad(Int(parts.tm_year) + 1900, 4)) \(clock(parts)) GMT"
  }

  /// The moment that `http` wrote; nil for any other text.
  static func readHTTP(_ text: String) -> Timestamp? {
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: String(words[2]))
    else { return nil }
    let clock = words[4].split(separator: ":").compactMap { CInt($0) }
    guard clock.count == 3, let day = CInt(words[1]), let year = CInt(words[3]) else { return nil }
    var parts = tm()
    parts.tm_mday = day
    parts.tm_mon = CInt(month)
    parts.tm_year = year - 1900
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (clock[0], clock[1], clock[2])
    return Timestamp(seconds: Int64(timegm(&parts)))
  }

  /// The moment that `iso` wrote; nil for any other text.
  static func readISO(_ text: String) -> Timestamp? {
    let numbers = text.split { !$0.isASCII || !$0.isNumber }.compactMap { Int64($0) }
    guard numbers.count == 7, text.utf8.count == 24 else { return nil }
    var parts = tm()
    parts.tm_year = CInt(clamping: numbers[0] - 1900)
    parts.tm_mon = CInt(clamping: numbers[1] - 1)
    parts.tm_mday = CInt(clamping: numbers[2])
    parts.tm_hour = CInt(clamping: numbers[3])
    parts.tm_min = CInt(clamping: numbers[4])
    parts.tm_sec = CInt(clamping: numbers[5])
    return Timestamp(seconds: Int64(timegm(&parts)), nanoseconds: numbers[6] * 1_000_000)
  }

  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  private static func fields(_ time: Timestamp) -> tm {
    var seconds = time.timespec.tv_sec
    var parts = tm()
    gmtime_r(&seconds, &parts)
    return parts
  }

  private static func clock(_ parts: tm) -> String {
    "\(pad(Int(parts.tm_hour), 2)):\(pad(Int(parts.tm_min), 2)):\(pad(Int(parts.tm_sec), 2))"
  }

  private static func pad(_ number: Int, _ width: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, width - text.count)) + text
  }
}

extension Timestamp {
  /// The same moment cut to whole milliseconds, the server's grain.
  var milliseconds: Timestamp {
    Timestamp(nanoseconds: nanoseconds - nanoseconds % 1_000_000)
  }

  /// The same moment cut to whole seconds, the grain of the hosted blob store.
  var wholeSeconds: Timestamp {
    Timestamp(nanoseconds: nanoseconds - nanoseconds % 1_000_000_000)
  }

  /// Whole seconds since 1970, as tokens carry them.
  var unixSeconds: Int64 { nanoseconds / 1_000_000_000 }
}
