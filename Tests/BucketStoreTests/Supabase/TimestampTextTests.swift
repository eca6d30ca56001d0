import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

@Suite struct TimestampTextTests {
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0),
    ("2026-04-27T10:30:57.123Z", 1_777_285_857_123_000_000),
    ("2026-04-27T10:30:57.123456789+00:00", 1_777_285_857_123_456_789),
    ("2026-04-27 12:30:57.5+02", 1_777_285_857_500_000_000),
    ("2026-04-27T05:00:57-0530", 1_777_285_857_000_000_000),
    ("2024-02-29T23:59:60Z", 1_709_251_200_000_000_000),
    ("1969-12-31T23:59:59.250Z", -750_000_000),
  ])
  func aDateOfJSONIsRead(text: String, nanoseconds: Int64) {
    #expect(Timestamp(iso8601: text)?.nanoseconds == nanoseconds)
  }

  @Test(arguments: [
    "", "2026", "2026-04-27", "2026-04-27T10:30:57", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z",
    "9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2026-01-01T00:00:00.Z",
    "2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00Zx", "2026-01-01T00:00:00+24",
    "２０２６-01-01T00:00:00Z",
  ])
  func whatIsNoDateOfJSONIsNone(text: String) {
    #expect(Timestamp(iso8601: text) == nil)
  }

  @Test func aDateOfAHeaderIsRead() {
    #expect(
      Timestamp(httpDate: "Mon, 27 Apr 2026 10:30:57 GMT")?.nanoseconds
        == 1_777_285_857_000_000_000)
    for text in [
      "", ",", "Mon, 27 Foo 2026 10:30:57 GMT", "Mon, 27 Apr 2026 10:30:57 UTC",
      "Mon Apr 27 2026 10:30:57 GMT+0000 (Coordinated Universal Time)", "Mon, 7 Apr",
    ] {
      #expect(Timestamp(httpDate: text) == nil)
    }
  }

  @Test func everyDayAgreesWithTheCalendarOfTheSystem() throws {
    let formatter = ISO8601DateFormatter()
    for day in stride(from: -100_000, to: 100_000, by: 37) {
      let date = Date(timeIntervalSince1970: Double(day) * 86_400 + 3_723)
      let text = formatter.string(from: date)
      #expect(
        Timestamp(iso8601: text)?.nanoseconds == (Int64(day) * 86_400 + 3_723) * 1_000_000_000,
        "\(text)")
    }
  }

  @Test func randomTextNeverTraps() {
    var random = SeededGenerator(seed: 7)
    let alphabet = Array("0123456789-:T.Z+ ,GMTJanApr\u{e9}".unicodeScalars)
    var read = 0
    for _ in 0..<20_000 {
      let base = Array("2026-04-27T10:30:57.123Z".unicodeScalars)
      var text = String.UnicodeScalarView()
      for scalar in base {
        text.append(
          Int.random(in: 0..<12, using: &random) == 0
            ? alphabet[Int.random(in: 0..<alphabet.count, using: &random)] : scalar)
      }
      if Timestamp(iso8601: String(text)) != nil { read += 1 }
      _ = Timestamp(httpDate: "Mon, " + String(text))
    }
    #expect((1..<20_000).contains(read))
  }
}
