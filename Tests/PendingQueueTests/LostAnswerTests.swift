import BucketStore
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// One device alone writes, and answers of the store are lost: never is that a conflict.
@Suite struct LostAnswerTests {
  private let lost = StoreError(.connectivity, "cut")

  @Test func aFileChangedAfterALostAnswerReplacesWhatWasStored() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    for bytes in [[2], [3], [4]] as [[UInt8]] {
      fixture.store.inject(.loseAnswer(lost), on: .put)
      fixture.drain()
      try fixture.add("a", bytes)
      fixture.queue.gateChanged()
    }
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [4])
    #expect(fixture.queue.counts == PendingCounts())
  }

  @Test func whatAnEarlierTryStoredIsTheBaseFromThenOn() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    fixture.store.inject(.loseAnswer(lost), on: .put)
    fixture.drain()
    try fixture.add("a", [2])
    fixture.store.inject(.fail(StoreError(.server, "later")), on: .put)
    fixture.queue.gateChanged()
    fixture.drain()
    let tag = try #require(fixture.store.facts("photos", "a")?.tag)
    guard case .object(_, tag) = try #require(fixture.entry("a")).record.base else {
      Issue.record("the base is what it was")
      return
    }
  }

  @Test func aFileMadeAgainAfterItsRemovalReplacesWhatComesUpLate() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    fixture.store.inject(.loseAnswer(lost), on: .put)
    fixture.drain()
    try fixture.queue.remove(fixture.name("a"))
    try fixture.add("a", [2])
    // The deletion does not see it yet.
    fixture.store.inject(.fail(StoreError(.notFound, "not yet")), on: .info)
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [2])
    #expect(fixture.queue.counts == PendingCounts())
  }

  @Test func aFileThatBecameLargeKnowsTheSmallOneThatWasStored() throws {
    let fixture = try QueueFixture()
    fixture.store.writing.resumable = 8
    try fixture.add("a", [1, 2])
    fixture.store.inject(.fail(lost), on: .put)
    fixture.drain()
    // Stored after all, and by its bytes alone to be known.
    fixture.store.put("photos", "a", [1, 2])
    let large = [UInt8](repeating: 7, count: 20)
    try fixture.add("a", large)
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == large)
    #expect(fixture.queue.counts == PendingCounts())
  }

  @Test func whatAnotherWriterStoredIsStillAConflict() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    fixture.store.inject(.loseAnswer(lost), on: .put)
    fixture.drain()
    fixture.store.put("photos", "a", [9])
    try fixture.add("a", [2])
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [9])
    #expect(fixture.receiver.elsewhere.keys.contains(fixture.name("a")))
  }

  @Test func aRemovedFileThatAnotherWriterHasReplacedIsToldOf() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    fixture.store.inject(.loseAnswer(lost), on: .put)
    fixture.drain()
    try fixture.queue.remove(fixture.name("a"))
    fixture.store.put("photos", "a", [9])
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(Array(fixture.receiver.elsewhere.keys) == [fixture.name("a")])
    #expect(fixture.store.bytes("photos", "a") == [9])
  }

  @Test func theUploadOfAFileThatWasReplacedIsGivenUp() throws {
    let fixture = try QueueFixture()
    try fixture.reopen(uploads: 1)
    fixture.store.writing.resumable = 8
    try fixture.add("a", [UInt8](repeating: 1, count: 20))
    fixture.store.inject(.cut(after: 5), on: .continueUpload)
    fixture.drain()
    #expect(fixture.store.openUploads.count == 1)
    try fixture.add("a", [2])
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [2])
    // What an uploader does when it comes by.
    while fixture.queue.abandonNext() {}
    #expect(fixture.store.openUploads == [])
  }
}
