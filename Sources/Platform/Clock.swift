package import Glibc

/// A length of time in nanoseconds.
package struct Span: Hashable, Comparable, Sendable {
  /// May be negative.
  package let nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// A span of thousandths of a second.
  package static func milliseconds(_ count: Int64) -> Span {
    Span(nanoseconds: count.multipliedReportingOverflow(by: 1_000_000).partialValue)
  }

  /// A span of seconds; what does not fit (a century is the bound) is cut to it.
  package static func seconds(_ count: Double) -> Span {
    Span(nanoseconds: Int64(min(max(count, 0), 3_153_600_000) * 1e9))
  }

  /// No time at all.
  package static let zero = Span(nanoseconds: 0)

  /// In seconds, with a fraction.
  package var seconds: Double { Double(nanoseconds) / 1e9 }

  /// For people, in seconds with one decimal at most, as in `10 s` or `2.5 s`.
  package var text: String {
    let tenths = (nanoseconds &+ 50_000_000) / 100_000_000
    return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
  }

  package static func < (left: Span, right: Span) -> Bool { left.nanoseconds < right.nanoseconds }
  /// Wraps around past 292 years.
  package static func + (left: Span, right: Span) -> Span {
    Span(nanoseconds: left.nanoseconds &+ right.nanoseconds)
  }
  /// Wraps around past 292 years.
  package static func * (left: Span, right: Int64) -> Span {
    Span(nanoseconds: left.nanoseconds.multipliedReportingOverflow(by: right).partialValue)
  }
}

/// A moment of the monotonic clock (clock_gettime(2), CLOCK_MONOTONIC), for waiting.
package struct Instant: Hashable, Comparable, Sendable {
  /// Since a moment that the system chooses, most often its start.
  package let nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// The present moment.
  package static var now: Instant {
    Instant(nanoseconds: Clock.read(CLOCK_MONOTONIC))
  }

  /// As pthread_cond_timedwait(3) takes it.
  package var timespec: Glibc.timespec {
    Glibc.timespec(
      tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
  }

  /// The time passed since an earlier moment.
  package func since(_ earlier: Instant) -> Span {
    Span(nanoseconds: nanoseconds &- earlier.nanoseconds)
  }

  /// A later moment; the last one there is where the sum does not fit.
  package static func + (left: Instant, right: Span) -> Instant {
    let (sum, overflow) = left.nanoseconds.addingReportingOverflow(right.nanoseconds)
    return Instant(nanoseconds: overflow ? .max : sum)
  }
  package static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}

/// A moment of the calendar in nanoseconds since 1970-01-01 UTC, for what is kept on disk.
package struct Timestamp: Hashable, Comparable, Sendable {
  /// Since 1970-01-01 UTC; negative before.
  package let nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  package init(seconds: Int64, nanoseconds: Int64 = 0) {
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    self.nanoseconds = overflow ? (seconds < 0 ? .min : .max) : product &+ nanoseconds
  }

  /// The present moment by the device's clock, which people may set.
  package static var now: Timestamp { Timestamp(nanoseconds: Clock.read(CLOCK_REALTIME)) }

  /// 1970-01-01 UTC: earlier than anything that is kept.
  package static let epoch = Timestamp(nanoseconds: 0)

  /// As utimensat(2) takes it.
  package var timespec: Glibc.timespec {
    var seconds = nanoseconds / 1_000_000_000
    var rest = nanoseconds % 1_000_000_000
    if rest < 0 {
      rest += 1_000_000_000
      seconds -= 1
    }
    return Glibc.timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
  }

  /// The time passed since an earlier moment; negative when the clock was set back.
  package func since(_ earlier: Timestamp) -> Span {
    Span(nanoseconds: nanoseconds &- earlier.nanoseconds)
  }

  /// A later moment. Wraps around past the year 2262.
  package static func + (left: Timestamp, right: Span) -> Timestamp {
    Timestamp(nanoseconds: left.nanoseconds &+ right.nanoseconds)
  }
  package static func < (left: Timestamp, right: Timestamp) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}

/// Reads the system's clocks.
enum Clock {
  static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
