import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// What becomes of a file whose writer was told that the disk is full.
@Suite struct NoRoomTests {
  private let fixture: QueueFixture

  init() throws {
    fixture = try QueueFixture()
    fixture.store.put("photos", "a", [9])
  }

  /// Begins to replace what the store has.
  private func begin() throws -> PendingFile {
    let tag = fixture.store.facts("photos", "a")?.tag
    return try fixture.queue.create(
      fixture.name("a"), NewFile(base: .object(version: nil, tag: tag)))
  }

  /// Has a write fail as on a full disk.
  private func fail(_ file: PendingFile, _ bytes: [UInt8], at offset: Int64) throws {
    let descriptor = try #require(
      fixture.queue.state.withLock { $0.slots[file.id]?.content?.file.descriptor })
    let kept = dup(descriptor)
    let full = open("/dev/full", O_RDWR | O_CLOEXEC)
    defer {
      close(kept)
      close(full)
    }
    try check { dup2(full, descriptor) }
    #expect(throws: Errno.noSpace) { try fixture.write(file, bytes, at: offset) }
    try check { dup2(kept, descriptor) }
  }

  private func expectIncomplete(_ bytes: [UInt8]) throws {
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [9])
    let record = try #require(fixture.entry("a")).record
    #expect(record.state == .failed)
    #expect(record.failure?.kind == "no-room")
    #expect(record.failure?.isRetryable == false)
    #expect(try fixture.bytes("a") == bytes)
    #expect(fixture.queue.counts.failed == 1)
  }

  @Test func whatWasWrittenBeforeIsKeptAndNotSentUntilItIsRetried() throws {
    let file = try begin()
    try fixture.write(file, [1, 2])
    try fail(file, [3, 4], at: 2)
    try file.flush()
    file.close()
    try expectIncomplete([1, 2])
    let restarted = try fixture.afterKill()
    #expect(restarted.entry("a")?.record.failure?.kind == "no-room")
    #expect(fixture.queue.retry(fixture.name("a")) == 1)
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1, 2])
  }

  @Test func aWriterThatWritesTheRestAfterAllHasAWholeFile() throws {
    let file = try begin()
    try fixture.write(file, [1, 2])
    try fail(file, [3, 4, 5, 6], at: 2)
    try fixture.write(file, [3, 4], at: 2)
    try file.flush()
    try expectIncomplete([1, 2, 3, 4])
    try fixture.write(file, [5, 6], at: 4)
    try file.flush()
    file.close()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1, 2, 3, 4, 5, 6])
  }

  @Test func aWriterThatCutsTheFileWhereItEndedHasAWholeFile() throws {
    let file = try begin()
    try fixture.write(file, [1, 2])
    try fail(file, [3, 4], at: 2)
    try file.truncate(to: 2)
    file.close()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1, 2])
  }

  @Test func whatIsWrittenElsewhereDoesNotMakeItWhole() throws {
    let file = try begin()
    try fixture.write(file, [1, 2])
    try fail(file, [3, 4], at: 2)
    try fixture.write(file, [7], at: 0)
    file.close()
    try expectIncomplete([7, 2])
  }

  @Test func aFileOpenedAgainIsWholeOnceItWasWrittenOn() throws {
    let file = try begin()
    try fixture.write(file, [1, 2])
    try fail(file, [3], at: 2)
    file.close()
    let again = try fixture.queue.edit(fixture.name("a"))
    try fixture.write(again, [7])
    try again.flush()
    try expectIncomplete([7, 2])
    try fixture.write(again, [3], at: 2)
    again.close()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [7, 2, 3])
  }

  @Test func noSyncMakesItWhole() throws {
    let file = try begin()
    try fixture.write(file, [1, 2])
    try fail(file, [3], at: 2)
    try file.sync()
    let restarted = try fixture.afterKill()
    restarted.drain()
    #expect(restarted.store.bytes("photos", "a") == [9])
    #expect(restarted.entry("a")?.record.state == .failed)
    file.close()
  }

  @Test func aWholeFileThatWasPendingUnderTheNameIsSentInItsStead() throws {
    try fixture.add("b", [1])
    let file = try fixture.queue.create(fixture.name("b"), NewFile(base: .absent))
    try fixture.write(file, [2])
    try fail(file, [3], at: 1)
    file.close()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "b") == [1])
    #expect(try fixture.bytes("b") == [2])
    #expect(fixture.entry("b")?.record.failure?.kind == "no-room")
    #expect(fixture.queue.retry(fixture.name("b")) == 1)
    fixture.drain()
    #expect(fixture.store.bytes("photos", "b") == [2])
  }

  @Test func aHalfFileRenamedOverAWholeOneIsNotSentEither() throws {
    try fixture.add("b", [1])
    let file = try fixture.queue.create(fixture.name("b.new"), NewFile(base: .absent))
    try fixture.write(file, [2])
    try fail(file, [3], at: 1)
    file.close()
    try fixture.queue.rename(fixture.name("b.new"), to: fixture.name("b"), base: .absent)
    fixture.drain()
    #expect(fixture.store.bytes("photos", "b") == [1])
    #expect(try fixture.bytes("b") == [2])
  }

  @Test func aFileThatIsDiscardedLeavesWhatWasPendingBefore() throws {
    try fixture.add("b", [1])
    let file = try fixture.queue.create(fixture.name("b"), NewFile(base: .absent))
    try fixture.write(file, [2])
    file.discard()
    #expect(try fixture.bytes("b") == [1])
    fixture.drain()
    #expect(fixture.store.bytes("photos", "b") == [1])
    #expect(try fixture.kept.isEmpty)
  }
}
