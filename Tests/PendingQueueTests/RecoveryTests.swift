import BucketStore
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// Each torn state that a start may find, made by hand, and what becomes of it.
@Suite struct RecoveryTests {
  private func record(
    _ value: UInt64, _ key: ByteString, size: Int64, _ state: PendingState = .waiting
  ) -> PendingRecord {
    PendingRecord(
      id: PendingID(value: value), object: ObjectName(bucket: "photos", key: key),
      created: Timestamp(seconds: 1), placed: value, contentType: "text/plain", size: size,
      modified: Timestamp(seconds: 2), mode: 0o644, base: .absent, state: state, owner: "anna")
  }

  /// A folder with the files given, opened as after a kill.
  private func start(_ files: [String: [UInt8]]) throws -> QueueFixture {
    let fixture = try QueueFixture()
    fixture.close()
    for (name, bytes) in files { try fixture.scratch.file("profile/pending/\(name)", bytes) }
    try fixture.reopen()
    return fixture
  }

  private func aside(_ fixture: QueueFixture) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: fixture.folder + "/aside").sorted()
  }

  @Test func uploadingBecomesWaiting() throws {
    var record = record(16, "a", size: 1, .uploading)
    record.note(tried: Fingerprint(size: 1, sha256: "00", md5: "00"))
    let fixture = try start(["\(record.id).json": record.encoded(), "\(record.id).data": [1]])
    #expect(fixture.entry("a")?.state == .waiting)
    #expect(fixture.queue.counts.uploading == 0)
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1])
  }

  @Test func emptyBytesWithoutARecordAreRemovedAndOthersPutAside() throws {
    let fixture = try start([
      "0000000000000010.data": [], "0000000000000011.data": [1, 2],
    ])
    #expect(try fixture.kept.isEmpty)
    #expect(try aside(fixture) == ["0000000000000011.data"])
    #expect(fixture.queue.counts.aside == 1)
    try fixture.reopen()
    #expect(fixture.queue.counts.aside == 1)
  }

  @Test func aRecordWithoutBytesIsPutAsideWhenItWasNeverTried() throws {
    let record = record(16, "a", size: 1)
    let fixture = try start(["\(record.id).json": record.encoded()])
    #expect(fixture.entry("a") == nil)
    #expect(try aside(fixture) == ["\(record.id).json"])
  }

  @Test func aRecordWhoseBytesWereHandedOverGoesOnceTheStoreConfirmsIt() throws {
    var record = record(16, "a", size: 1, .uploading)
    record.note(
      tried: Fingerprint(
        size: 1, sha256: Digest.hex(.sha256, of: [1]), md5: Digest.hex(.md5, of: [1])))
    let fixture = try start(["\(record.id).json": record.encoded()])
    #expect(fixture.entry("a") == nil)
    #expect(fixture.queue.counts.unsent == 1)
    fixture.store.put("photos", "a", [1])
    fixture.drain()
    #expect(fixture.queue.counts == PendingCounts())
    #expect(try fixture.kept.isEmpty)
    #expect(fixture.store.bytes("photos", "a") == [1])
  }

  @Test func aRecordWhoseBytesAreGoneIsToldWhenTheStoreLacksThem() throws {
    var record = record(16, "a", size: 1, .uploading)
    record.note(tried: Fingerprint(size: 1, sha256: "00", md5: "00"))
    let fixture = try start(["\(record.id).json": record.encoded()])
    fixture.drain()
    #expect(fixture.queue.counts.aside == 1)
    #expect(fixture.queue.counts.unsent == 0)
    #expect(try aside(fixture) == ["\(record.id).json"])
  }

  @Test func aLeftoverOfAReplacedRecordIsRemoved() throws {
    let record = record(16, "a", size: 1)
    let fixture = try start([
      "\(record.id).json": record.encoded(), "\(record.id).data": [1],
      "\(record.id).json.new": Array("{".utf8), "0000000000000011.json.new": [],
    ])
    #expect(fixture.entry("a")?.state == .waiting)
    #expect(try fixture.kept == ["\(record.id).data", "\(record.id).json"])
  }

  @Test(arguments: ["", "{", "[]", "{\"format\":1}", "\0\0\0\0"])
  func aRecordThatCannotBeReadIsKeptAsideWithItsBytes(_ text: String) throws {
    let fixture = try start([
      "0000000000000010.json": Array(text.utf8), "0000000000000010.data": [1],
    ])
    #expect(fixture.queue.entries.isEmpty)
    #expect(try aside(fixture) == ["0000000000000010.data", "0000000000000010.json"])
    #expect(fixture.queue.counts.aside == 1)
  }

  @Test func aRecordOfANewerFormatIsLeftAloneAndTold() throws {
    let text = Array(#"{"format": 2, "id": "0000000000000010", "surprise": true}"#.utf8)
    let fixture = try start([
      "0000000000000010.json": text, "0000000000000010.data": [1],
    ])
    #expect(fixture.queue.entries.isEmpty)
    #expect(fixture.queue.counts.aside == 1)
    try fixture.add("b", [2])
    fixture.drain()
    #expect(try fixture.kept == ["0000000000000010.data", "0000000000000010.json"])
    #expect(try File.contents(of: fixture.folder + "/0000000000000010.json") == text)
  }

  @Test(arguments: [[], [1], [1, 2, 3]] as [[UInt8]])
  func aRecordWithAnotherNumberOfBytesIsFailedAndReadable(_ bytes: [UInt8]) throws {
    let record = record(16, "a", size: 2)
    let fixture = try start(["\(record.id).json": record.encoded(), "\(record.id).data": bytes])
    let entry = try #require(fixture.entry("a"))
    #expect(entry.state == .failed)
    #expect(entry.record.failure?.kind == PendingFailure.damaged)
    #expect(entry.size == Int64(bytes.count))
    #expect(try fixture.bytes("a") == bytes)
    fixture.drain()
    #expect(fixture.store.requests.isEmpty)
    fixture.queue.retry(fixture.name("a"))
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == bytes)
  }

  @Test func aRemovalInTheMiddleIsFinished() throws {
    let record = record(16, "a", size: 1)
    let fixture = try start([
      "\(record.id).gone": record.encoded(), "\(record.id).data": [1],
      "0000000000000011.gone": record.encoded(),
    ])
    #expect(fixture.entry("a") == nil)
    #expect(try fixture.kept.isEmpty)
    #expect(fixture.queue.counts == PendingCounts())
  }

  @Test func writingIsInterruptedUnlessItWasSyncedOrEmpty() throws {
    let plain = record(16, "plain", size: 0, .writing)
    var synced = record(17, "synced", size: 1, .writing)
    synced.isSynced = true
    let empty = record(18, "empty", size: 0, .writing)
    let fixture = try start([
      "\(plain.id).json": plain.encoded(), "\(plain.id).data": [1, 2],
      "\(synced.id).json": synced.encoded(), "\(synced.id).data": [1, 2, 3],
      "\(empty.id).json": empty.encoded(), "\(empty.id).data": [],
    ])
    #expect(fixture.entry("plain")?.record.failure?.kind == PendingFailure.interrupted)
    #expect(fixture.entry("plain")?.size == 2)
    #expect(fixture.entry("synced")?.state == .waiting)
    #expect(fixture.entry("synced")?.size == 3)
    #expect(fixture.entry("empty") == nil)
  }

  @Test func ofTwoCompleteRecordsOfOneNameTheLaterOneStays() throws {
    let old = record(16, "a", size: 1)
    let new = record(17, "a", size: 2)
    let fixture = try start([
      "\(old.id).json": old.encoded(), "\(old.id).data": [1],
      "\(new.id).json": new.encoded(), "\(new.id).data": [2, 2],
    ])
    #expect(fixture.queue.entries.map(\.id) == [new.id])
    #expect(try fixture.kept.count == 2)
  }

  @Test func aRenameInTheMiddleIsFinishedOnce() throws {
    let tried = Fingerprint(
      size: 1, sha256: Digest.hex(.sha256, of: [1]), md5: Digest.hex(.md5, of: [1]))
    var moved = record(16, "b", size: 1)
    moved.left = PendingRecord.LeftName(
      id: PendingID(value: 17), object: ObjectName(bucket: "photos", key: "a"), tried: [tried])
    let fixture = try start(["\(moved.id).json": moved.encoded(), "\(moved.id).data": [1]])
    #expect(fixture.queue.isDeleted(fixture.name("a")))
    fixture.store.put("photos", "a", [1])
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["b"])
    #expect(try fixture.kept.isEmpty)
  }

  @Test func whatIsNoFileOfTheQueueIsLeftAlone() throws {
    let fixture = try start(["notes.txt": [1], "10.json": [2], "0000000000000010.tmp": [3]])
    #expect(try fixture.kept == ["0000000000000010.tmp", "10.json", "notes.txt"])
    #expect(fixture.queue.counts == PendingCounts())
  }

  @Test func aSymlinkIsNoFileOfBytes() throws {
    let fixture = try QueueFixture()
    fixture.close()
    let record = record(16, "a", size: 1)
    try fixture.scratch.file("profile/pending/\(record.id).json", record.encoded())
    let secret = try fixture.scratch.file("secret", [7])
    #expect(symlink(secret, "\(fixture.folder)/\(record.id).data") == 0)
    try fixture.reopen()
    #expect(fixture.entry("a") == nil)
    #expect(try File.contents(of: secret) == [7])
  }

  @Test func idsAreNeverUsedTwiceAlsoWhenTheClockGoesBack() throws {
    let far = record(4_000_000_000_000_000_000, "a", size: 1)
    let fixture = try start(["\(far.id).json": far.encoded(), "\(far.id).data": [1]])
    let first = try fixture.add("b", [1])
    let second = try fixture.add("c", [1])
    #expect(far.id < first && first < second)
  }

  /// In a process of its own: other tests' time and memory are not of interest here.
  @Test func twentyThousandRecordsAreReadQuicklyAndInLittleMemory() async throws {
    await #expect(processExitsWith: .success) {
      try RecoveryTests.readTwentyThousandRecords()
    }
  }

  private static func readTwentyThousandRecords() throws {
    let fixture = try QueueFixture()
    fixture.close()
    var template = RecoveryTests().record(16, "KEY", size: 1)
    template.sha256 = Digest.hex(.sha256, of: [1])
    let text = String(decoding: try template.encoded(), as: UTF8.self)
    let bytes = try fixture.scratch.file("bytes", [1])
    for index in 0..<20_000 {
      let id = PendingID(value: 1_800_000_000_000_000_000 + UInt64(index))
      let json = Array(
        text.replacing("KEY", with: "holiday/2026/day \(index / 500)/IMG_\(index).jpg")
          .replacing("\(template.id)", with: "\(id)").utf8)
      let file = try File("\(fixture.folder)/\(id).json", O_WRONLY | O_CREAT)
      try json.withUnsafeBufferPointer { (buffer) throws(Errno) in
        try file.write(UnsafeRawBufferPointer(buffer), at: 0)
      }
      try check { link(bytes, "\(fixture.folder)/\(id).data") }
    }
    let before = try Self.residentBytes()
    // The processor's time: what the rest of the machine does is not of interest here.
    let start = Self.processorTime
    try fixture.reopen()
    let span = Span(nanoseconds: Self.processorTime.nanoseconds - start.nanoseconds)
    let memory = (try Self.residentBytes() - before) / 20_000
    #expect(fixture.queue.counts.waiting == 20_000)
    print("20,000 records: \(span.seconds) s, \(memory) bytes each")
    // Two seconds in a debug build, on two threads; the rest is for tests that run beside this one.
    #expect(span < .seconds(15))
    #expect(memory < 2048)
    let asked = Instant.now
    #expect(fixture.entry("holiday/2026/day 3/IMG_1501.jpg") != nil)
    #expect(fixture.queue.folder("holiday/2026/day 3/", in: "photos").files.count == 500)
    #expect(Instant.now.since(asked) < .seconds(1))
  }

  private static var processorTime: Span {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Span(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  private static func residentBytes() throws -> Int {
    let text = String(
      decoding: try File("/proc/self/statm", O_RDONLY).readToEnd(), as: UTF8.self)
    return try #require(Int(text.split(separator: " ")[1])) * 4096
  }
}
