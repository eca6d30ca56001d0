import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// The form of a record on disk, pinned: files of released programs must stay readable.
@Suite struct FormatTests {
  private static var samples: String { #filePath.replacing("FormatTests.swift", with: "Samples/") }

  private func sample(_ name: String) throws -> [UInt8] {
    try File.contents(of: Self.samples + name)
  }

  private var full: PendingRecord {
    var record = PendingRecord(
      id: PendingID(value: 0x18fa_c1b2_c3d4_e5f6),
      object: ObjectName(bucket: "photos", key: "2026/Grüße \"1\".jpg"),
      created: Timestamp(seconds: 1_800_000_000, nanoseconds: 1), placed: 1_800_000_000_000_000_001,
      contentType: "image/jpeg", size: 1234,
      modified: Timestamp(seconds: -1, nanoseconds: 999_999_999), mode: 0o644,
      base: .object(version: "v7", tag: "\"abc\""), state: .failed, owner: "anna")
    record.sha256 = "00ff"
    record.attributes = ["user.note": [0, 255]]
    record.isSynced = true
    record.failure = PendingFailure(
      kind: "refused", reason: "the bucket's words", isRetryable: false)
    record.attempts = 3
    record.nextTry = Timestamp(seconds: 1_800_000_060)
    record.upload = UploadToken("https://store.example/upload/1")
    record.tried = [Fingerprint(size: 1234, sha256: "00ff", md5: "0f")]
    record.conflictOf = ObjectName(bucket: "photos", key: ByteString([0xff, 0x61]))
    record.left = PendingRecord.LeftName(
      id: PendingID(value: 17), object: ObjectName(bucket: "photos", key: "old"), tried: [])
    return record
  }

  private var least: PendingRecord {
    PendingRecord(
      id: PendingID(value: 1),
      object: ObjectName(bucket: "b", key: ByteString([0xff, 0x2f, 0x61])),
      created: .epoch, placed: 1, contentType: "application/octet-stream", size: 0,
      modified: .epoch, mode: 0o600, base: .absent, state: .waiting, owner: "")
  }

  @Test func theFullRecordIsWrittenAsItsSample() throws {
    #expect(
      String(decoding: try full.encoded(), as: UTF8.self)
        == String(decoding: try sample("full.json"), as: UTF8.self))
    #expect(try PendingRecord(decoding: sample("full.json"), id: full.id) == full)
  }

  @Test func theLeastRecordIsWrittenAsItsSample() throws {
    #expect(
      String(decoding: try least.encoded(), as: UTF8.self)
        == String(decoding: try sample("least.json"), as: UTF8.self))
    #expect(try PendingRecord(decoding: sample("least.json"), id: least.id) == least)
  }

  @Test func theDeletionIsWrittenAsItsSample() throws {
    var deletion = full.deletion(id: PendingID(value: 17), Timestamp(seconds: 5))
    deletion.owner = "anna"
    #expect(
      String(decoding: try deletion.encoded(), as: UTF8.self)
        == String(decoding: try sample("deletion.json"), as: UTF8.self))
    #expect(try PendingRecord(decoding: sample("deletion.json"), id: deletion.id) == deletion)
  }

  @Test func everyFieldOfTheSamplesIsDocumented() throws {
    let document = String(
      decoding: try File.contents(
        of: #filePath.replacing("Tests/PendingQueueTests/FormatTests.swift", with: "")
          + "docs/durability.md"), as: UTF8.self)
    let object = try #require(
      JSONSerialization.jsonObject(with: Data(sample("full.json"))) as? [String: Any])
    #expect(object.count > 20)
    for field in object.keys { #expect(document.contains("`\(field)`"), "\(field)") }
  }

  @Test func aRecordOfAnotherNameIsNotBelieved() throws {
    #expect(throws: RecordError.self) {
      _ = try PendingRecord(decoding: self.sample("least.json"), id: PendingID(value: 2))
    }
  }

  @Test func anyRecordComesBackAsItWas() throws {
    var random = SeededGenerator(seed: 7)
    for round in 0..<200 {
      var record = full
      record.object = ObjectName(
        bucket: ByteString(random.bytes(3)), key: ByteString(random.bytes(round)))
      record.conflictOf = ObjectName(
        bucket: record.object.bucket, key: ByteString(random.bytes(round % 9)))
      record.attributes = [ByteString(random.bytes(5)): random.bytes(round)]
      record.modified = Timestamp(nanoseconds: Int64.random(in: .min ... .max, using: &random))
      record.mode = UInt32.random(in: 0...0o7777, using: &random)
      record.size = Int64.random(in: 0 ... .max, using: &random)
      #expect(try PendingRecord(decoding: record.encoded(), id: record.id) == record)
    }
  }

  @Test func mediaTypesComeFromTheNameAlone() throws {
    let scratch = try Scratch()
    let path = try scratch.file(
      "globs2",
      Array(
        """
        # a comment
        60:text/x-special:*.special.txt
        50:text/plain:*.txt
        50:application/x-compressed-tar:*.tar.gz
        50:application/gzip:*.gz
        50:text/x-makefile:makefile
        50:text/x-c++src:*.C:cs
        50:text/x-csrc:*.c:cs
        """.utf8))
    let types = ContentTypes(path)
    #expect(types.type(for: "a/b.txt") == "text/plain")
    #expect(types.type(for: "A.TXT") == "text/plain")
    #expect(types.type(for: "a.special.txt") == "text/x-special")
    #expect(types.type(for: "a.b.tar.gz") == "application/x-compressed-tar")
    #expect(types.type(for: "a.gz") == "application/gzip")
    #expect(types.type(for: "Makefile") == "text/x-makefile")
    #expect(types.type(for: "a.C") == "text/x-c++src")
    #expect(types.type(for: "a.c") == "text/x-csrc")
    #expect(types.type(for: "photo.jpg") == "image/jpeg")
    #expect(types.type(for: "folder.txt/plain") == ContentTypes.unknown)
    #expect(types.type(for: ByteString([0xff, 0x2e, 0x74])) == ContentTypes.unknown)
    #expect(ContentTypes("/nonexistent").type(for: "a.png") == "image/png")
  }
}
