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
        "modified", "path", "pending", "size", "state", "version",
      ])
    let places = keys.compactMap { line.range(of: "\"\($0)\":")?.lowerBound }
    #expect(places.count == keys.count)
    #expect(places == places.sorted())
    #expect(line.contains(#""path":"/m/b/a""#))
  }

  @Test func aRecordHasTheKeysThatProgramsReadAlways() throws {
    let line = text([QueueReport.sample])
    let records = try #require(
      JSONSerialization.jsonObject(with: Data(line.utf8)) as? [[String: Any]])
    #expect(
      records.map { $0.keys.sorted() } == [
        [
          "attempts", "bucket", "conflict_of", "created_at", "id", "kind", "next_try",
          "object_path", "operation",
          "path", "reason", "retryable", "sent", "size", "state",
        ]
      ])
    #expect(records[0]["next_try"] is NSNull)
  }

  @Test func aRecordIsOneLineForPeople() {
    var record = QueueReport.sample
    #expect(record.text == "waiting          10 B     -    0  -         /m/b/a\n")
    record.reason = "the store fails"
    record.nextTry = "2026-11-30T08:00:05Z"
    #expect(
      record.text == "waiting          10 B     -    0  08:00:05  /m/b/a: the store fails\n")
    #expect(QueueReport.heading == "STATE            SIZE  SENT  TRY  NEXT      PATH\n")
  }

  @Test func theQueueIsSummedUpForPeople() {
    #expect(StatusReport.Queue().text == "0 waiting, 0 uploading, 0 failed")
    #expect(Count.unsent(1, folders: 0, deletions: 0) == "1 file")
    #expect(Count.unsent(3, folders: 1, deletions: 2) == "2 files, 1 new folder and 2 deletions")
    #expect(Count.unsent(0, folders: 0, deletions: 1) == "1 deletion")
    #expect(Count.unsent(2, folders: 2, deletions: 0) == "2 new folders")
    let queue = StatusReport.Queue(
      writing: 1, waiting: 2, uploading: 3, failed: 4, deletions: 5, bytes: 2048, others: 6,
      aside: 7)
    #expect(
      queue.text == "2 waiting, 3 uploading, 4 failed, 1 being written, "
        + "5 to be deleted at the store, 6 of another account, 7 put aside (2 KiB)")
    #expect(queue.unsent == 11)
  }

  @Test func theNetworksLineSaysWhatIsTrue() {
    var report = StatusReport(state: "serving", mountpoint: "/m", source: "s")
    report.network = "online"
    #expect(report.text.contains("  network   online\n"))
    report.networkReason = "the store is silent when files are asked for: h: no answer within 10 s"
    #expect(
      report.text.contains(
        "  network   online, but the store is silent when files are asked for: "
          + "h: no answer within 10 s\n"))
    report.network = "offline"
    report.networkReason = "h: cannot be connected to"
    #expect(report.text.contains("  network   offline: h: cannot be connected to\n"))
  }

  @Test func theStatusOfADeadMountHasEveryKey() throws {
    let line = text(StatusReport.sample)
    let keys = try #require(
      JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    ).keys.sorted()
    #expect(
      keys == [
        "cache", "cache_dir", "cache_problem", "conflicts", "hidden_keys", "listings", "log",
        "mountpoint",
        "network",
        "network_reason", "pid",
        "queue", "session", "since", "source", "state", "store", "version",
      ])
  }

  @Test func repliesSurviveTheWire() throws {
    let replies: [ControlReply] = [
      .done, .status(.sample), .object(.sample),
      .copy(CopyReport(path: "/m/ü", copy: "/c", fetchedAt: "t", size: 3)),
      .hidden([HiddenKeyReport(bucket: "b", key: "a//b", reason: "r")]),
      .queue(QueueAnswer(counts: StatusReport.Queue(), gate: "open", records: [.sample])),
      .waited(WaitReport(outcome: "offline", queue: StatusReport.Queue(), reason: "r")),
      .changed(ChangeReport(path: "/m/ü", files: 3)),
      .cleared(ClearReport(mountpoint: "/m", before: 9, after: 0, pending: 1)),
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
