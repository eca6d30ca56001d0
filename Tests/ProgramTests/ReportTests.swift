import Foundation
import Platform
import Testing

@testable import bucketfs

struct ReportTests {
  private func text(_ value: some Encodable) -> String { JSON.line(value) }

  @Test func whatIsNotKnownStandsAsNull() {
    #expect(
      text(ErrorReport(Complaint(.no, "nothing is mounted")))
        == #"{"error":"nothing is mounted","exit":1,"hint":null}"# + "\n")
  }

  @Test func keysAreInOrderAndAlwaysTheSame() throws {
    let line = text(ObjectReport.sample)
    let keys = try #require(
      JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    ).keys.sorted()
    #expect(
      keys == [
        "bucket", "confirmed", "content_type", "copy", "etag", "fetched_at", "key", "metadata",
        "modified", "path", "size", "state", "version",
      ])
    let places = keys.compactMap { line.range(of: "\"\($0)\":")?.lowerBound }
    #expect(places.count == keys.count)
    #expect(places == places.sorted())
    #expect(line.contains(#""path":"/m/b/a""#))
  }

  @Test func theStatusOfADeadMountHasEveryKey() throws {
    let line = text(StatusReport.sample)
    let keys = try #require(
      JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    ).keys.sorted()
    #expect(
      keys == [
        "cache", "cache_dir", "hidden_keys", "listings", "log", "mountpoint", "network",
        "network_reason", "pid",
        "queue", "session", "since", "source", "state", "store", "version",
      ])
  }

  @Test func repliesSurviveTheWire() throws {
    let replies: [ControlReply] = [
      .done, .status(.sample), .object(.sample),
      .copy(CopyReport(path: "/m/ü", copy: "/c", fetchedAt: "t", size: 3)),
      .hidden([HiddenKeyReport(bucket: "b", key: "a//b", reason: "r")]),
      ControlReply(Complaint(.refused, "no", hint: "ask")), ControlReply(Complaint(.no, "no")),
    ]
    for reply in replies {
      let line = JSON.encode(reply)
      #expect(!line.contains(UInt8(ascii: "\n")))
      #expect(JSON.decode(ControlReply.self, from: line) == reply)
    }
  }

  @Test func aRequestCarriesAnyBytes() {
    let path = ByteString([0x61, 0xFF, 0x2F, 0x25, 0x0A, 0x22])
    let line = JSON.encode(ControlRequest(.cached, path: path))
    #expect(JSON.decode(ControlRequest.self, from: line)?.pathBytes == path)
  }

  @Test(arguments: ["", "{", "[]", "null", #"{"verb":"fly"}"#, "\u{0}", #"{"path":"a"}"#])
  func nonsenseIsNoRequest(line: String) {
    #expect(JSON.decode(ControlRequest.self, from: Array(line.utf8)) == nil)
  }

  @Test func momentsAreInUTC() {
    #expect(Timestamp(seconds: 1_790_000_000).text == "2026-09-21T14:13:20Z")
    #expect(Timestamp.epoch.text == "1970-01-01T00:00:00Z")
  }

  @Test(arguments: [
    (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (256 << 20, "256 MiB"),
    (1_610_612_736, "1.5 GiB"), (Int64.max, "8388608 TiB"),
  ])
  func sizesAreShownForPeople(bytes: Int64, shown: String) {
    #expect(Quantity.text(bytes: bytes) == shown)
  }
}
