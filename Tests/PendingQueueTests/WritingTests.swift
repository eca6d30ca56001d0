import BucketStore
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// Files in the queue before anything is sent.
@Suite struct WritingTests {
  @Test func aFileIsShownFromItsCreationWithWhatWasWritten() throws {
    let fixture = try QueueFixture()
    let file = try fixture.queue.create(fixture.name("a/b.jpg"), NewFile(base: .absent))
    #expect(fixture.entry("a/b.jpg")?.state == .writing)
    try fixture.write(file, [1, 2, 3])
    try fixture.write(file, [9], at: 5)
    #expect(fixture.entry("a/b.jpg")?.size == 6)
    #expect(try fixture.bytes("a/b.jpg") == [1, 2, 3, 0, 0, 9])
    try file.flush()
    #expect(fixture.entry("a/b.jpg")?.state == .waiting)
    file.close()
    #expect(fixture.entry("a/b.jpg")?.writers == 0)
    #expect(fixture.entry("a/b.jpg")?.record.contentType == "image/jpeg")
  }

  @Test func foldersOfPendingFilesAreListedAndVanishWithTheLast() throws {
    let fixture = try QueueFixture()
    try fixture.add("a/b/c.txt", [1])
    try fixture.add("a/d.txt", [2])
    try fixture.add("e.txt", [3])
    let top = fixture.queue.folder("", in: "photos")
    #expect(top.files.map(\.name) == ["e.txt"])
    #expect(top.folders == ["a"])
    let inner = fixture.queue.folder("a/", in: "photos")
    #expect(inner.files.map(\.name) == ["d.txt"])
    #expect(inner.folders == ["b"])
    #expect(fixture.queue.hasEntries(below: "a/b/", in: "photos"))
    try fixture.queue.remove(fixture.name("a/b/c.txt"))
    #expect(!fixture.queue.hasEntries(below: "a/b/", in: "photos"))
    #expect(fixture.queue.folder("a/", in: "photos").folders.isEmpty)
    try fixture.queue.remove(fixture.name("a/d.txt"))
    #expect(fixture.queue.folder("", in: "photos").folders.isEmpty)
    #expect(fixture.queue.folder("", in: "docs").files.isEmpty)
  }

  @Test func theFolderAndItsFilesAreClosedToOthers() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    func mode(_ path: String) throws -> UInt32 {
      try File(path, O_RDONLY).status().st_mode & 0o777
    }
    #expect(try mode(fixture.folder) == 0o700)
    for name in try fixture.kept { #expect(try mode(fixture.folder + "/" + name) == 0o600) }
  }

  @Test func aFolderOfAnotherKindIsRefused() throws {
    let scratch = try Scratch()
    try scratch.folder("real")
    #expect(symlink("real", scratch.path("profile")) == 0)
    #expect(throws: QueueError.self) {
      _ = try PendingQueue(
        QueueOptions(directory: scratch.path("profile"), owner: ""), store: MemoryStore())
    }
  }

  @Test func twoProgramsNeverShareAQueue() throws {
    let fixture = try QueueFixture()
    let error = #expect(throws: QueueError.self) {
      _ = try PendingQueue(fixture.options(), store: MemoryStore())
    }
    #expect(error == .inUse(directory: fixture.folder, pid: getpid()))
    #expect(unlink(fixture.folder + "/lock") == 0)
    let again = #expect(throws: QueueError.self) {
      _ = try PendingQueue(fixture.options(), store: MemoryStore())
    }
    #expect(again == .inUse(directory: fixture.folder, pid: nil), "whatever is removed from it")
    fixture.close()
    try fixture.reopen()
  }

  @Test func whatWasClosedIsThereAfterAKillWithBytesNameTimeAndMode() throws {
    let fixture = try QueueFixture()
    let file = try fixture.queue.create(
      fixture.name("x/ü.bin"), NewFile(base: .absent, mode: 0o755))
    try fixture.write(file, [1, 2, 3])
    try file.flush()
    file.close()
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789)
    try fixture.queue.set(PendingAttributes(modified: time), of: fixture.name("x/ü.bin"))
    try fixture.queue.setAttribute("user.note", [0, 255], of: fixture.name("x/ü.bin"))

    let after = try fixture.afterKill()
    let entry = try #require(after.entry("x/ü.bin"))
    #expect(entry.state == .waiting)
    #expect(entry.record.mode == 0o755)
    #expect(entry.modified == time)
    #expect(entry.record.attributes == ["user.note": [0, 255]])
    #expect(try after.bytes("x/ü.bin") == [1, 2, 3])
  }

  @Test func aFileThatWasNeverClosedIsKeptAsInterruptedAndSentOnlyWhenRetried() throws {
    let fixture = try QueueFixture()
    let file = try fixture.queue.create(fixture.name("a"), NewFile(base: .absent))
    try fixture.write(file, [1, 2, 3])
    let after = try fixture.afterKill()
    let entry = try #require(after.entry("a"))
    #expect(entry.state == .failed)
    #expect(entry.record.failure?.kind == PendingFailure.interrupted)
    #expect(try after.bytes("a") == [1, 2, 3])
    after.drain()
    #expect(after.store.keys("photos").isEmpty)
    #expect(after.queue.retry(after.name("a")) == 1)
    after.drain()
    #expect(after.store.bytes("photos", "a") == [1, 2, 3])
    file.close()
  }

  @Test func aFileThatWasSyncedButNeverClosedWaitsLikeAnyOther() throws {
    let fixture = try QueueFixture()
    let file = try fixture.queue.create(fixture.name("a"), NewFile(base: .absent))
    try fixture.write(file, [1, 2, 3])
    try file.sync()
    try fixture.write(file, [4], at: 3)
    let after = try fixture.afterKill()
    #expect(after.entry("a")?.state == .waiting)
    #expect(try after.bytes("a") == [1, 2, 3, 4])
    file.close()
  }

  @Test func anEmptyFileIsAFileOnceItIsClosed() throws {
    let fixture = try QueueFixture()
    let open = try fixture.queue.create(fixture.name("open"), NewFile(base: .absent))
    try fixture.add("closed", [])
    let after = try fixture.afterKill()
    #expect(after.entry("closed")?.state == .waiting)
    #expect(after.entry("open") == nil)
    open.close()
  }

  @Test func changesInPlaceKeepTheRestAndAreSeenByOpenReaders() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2, 3, 4])
    let reader = try #require(try fixture.queue.open(fixture.name("a")))
    let writer = try fixture.queue.edit(fixture.name("a"))
    #expect(fixture.entry("a")?.state == .waiting)
    try fixture.write(writer, [9], at: 1)
    #expect(fixture.entry("a")?.state == .writing)
    #expect(try QueueFixture.read(reader) == [1, 9, 3, 4])
    try writer.truncate(to: 2)
    try writer.flush()
    writer.close()
    #expect(try fixture.bytes("a") == [1, 9])
    #expect(fixture.entry("a")?.size == 2)
    reader.close()
  }

  @Test func aReplacementLosesTheOldBytesOnlyOnceItIsClosed() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 1, 1])
    try fixture.queue.commit()
    let file = try fixture.queue.edit(fixture.name("a"), keepingBytes: false)
    try fixture.write(file, [2])
    // Shown as any file system shows it, but the acknowledged bytes are still in the folder.
    #expect(fixture.entry("a")?.size == 1)
    let killed = try fixture.afterKill()
    #expect(killed.queue.entries.map(\.size) == [3, 1])
    killed.drain()
    #expect(killed.store.bytes("photos", "a") == [1, 1, 1])
    killed.store.remove("photos", "a")

    try file.flush()
    file.close()
    try fixture.queue.commit()
    #expect(try fixture.kept.count == 2)
    #expect(try fixture.bytes("a") == [2])
  }

  @Test func whatIsAcknowledgedWhileAnotherHandleWritesCountsOnceThatWriteIsDone() throws {
    let fixture = try QueueFixture()
    let name = fixture.name("a")
    let first = try fixture.queue.create(name, NewFile(base: .absent))
    try fixture.write(first, [1, 1, 1])
    let second = try fixture.queue.edit(name)
    let killed = Locked<[PendingState?]>([])
    for (round, byte) in [UInt8(2), 3].enumerated() {
      fixture.whenNextAskedForTheTime {
        do {
          try second.flush()
          let state = try fixture.afterKill().entry("a")?.state
          killed.withLock { $0.append(state) }
        } catch {
          Issue.record("the middle of a write: \(error)")
        }
      }
      try fixture.write(first, [byte], at: 1)
      // In the middle of the write the bytes were not complete, whoever acknowledged them.
      #expect(killed.withLock { $0 } == Array(repeating: .failed, count: round + 1))
      let after = try fixture.afterKill()
      #expect(after.entry("a")?.state == .waiting)
      #expect(try after.bytes("a") == [1, byte, 1])
    }
    try fixture.write(first, [4], at: 3)
    #expect(try fixture.afterKill().entry("a")?.state == .failed)
    second.close()
    first.close()
    #expect(try fixture.afterKill().bytes("a") == [1, 3, 1, 4])
    #expect(fixture.entry("a")?.state == .waiting)
  }

  @Test func whoAsksForDurabilityIsToldWhenItFails() throws {
    let fixture = try QueueFixture()
    let id = try fixture.add("a", [1])
    try fixture.hide(id)
    for _ in 0..<2 { #expect(throws: Errno.loop) { try fixture.queue.commit() } }
    #expect(fixture.entry("a")?.record.failure?.kind == PendingFailure.device)
    try fixture.unhide(id)
    try fixture.queue.commit()
    #expect(fixture.queue.state.withLock { $0.uncommitted.isEmpty })
  }

  @Test func aFileThatIsNotDurableDoesNotGiveUpWhatItReplaces() throws {
    let fixture = try QueueFixture()
    let old = try fixture.add("a", [1, 1, 1])
    try fixture.queue.commit()
    let file = try fixture.queue.edit(fixture.name("a"), keepingBytes: false)
    try fixture.write(file, [2])
    try file.flush()
    file.close()
    try fixture.hide(file.id)
    for _ in 0..<2 {
      #expect(throws: Errno.loop) {
        try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
      }
      #expect(try fixture.kept.contains("\(old).data"))
      #expect(try fixture.bytes("a") == [2])
    }
    try fixture.unhide(file.id)
    // What becomes of another file is no obstacle.
    let other = try fixture.add("other", [3])
    try fixture.hide(other)
    try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
    try fixture.unhide(other)
    #expect(try !fixture.kept.contains("\(old).data"))
    #expect(try fixture.bytes("b") == [2])
  }

  @Test func aRemovedFileStaysUsableThroughItsHandlesAndLeavesNothing() throws {
    let fixture = try QueueFixture()
    let file = try fixture.queue.create(fixture.name("a"), NewFile(base: .absent))
    try fixture.write(file, [1, 2, 3])
    try fixture.queue.remove(fixture.name("a"))
    #expect(fixture.entry("a") == nil)
    try fixture.write(file, [4], at: 3)
    #expect(try QueueFixture.read(file) == [1, 2, 3, 4])
    try file.flush()
    file.close()
    #expect(try fixture.kept.isEmpty)
    #expect(fixture.queue.counts == PendingCounts())
  }

  @Test func aRenamedFileIsUnderTheNewNameOnlyAlsoWhileOpen() throws {
    let fixture = try QueueFixture()
    let file = try fixture.queue.create(fixture.name("a.part"), NewFile(base: .absent))
    try fixture.write(file, [1])
    try fixture.queue.rename(fixture.name("a.part"), to: fixture.name("d/a.png"), base: .absent)
    #expect(fixture.entry("a.part") == nil)
    #expect(fixture.entry("d/a.png")?.record.contentType == "image/png")
    try fixture.write(file, [2], at: 1)
    try file.flush()
    file.close()
    let after = try fixture.afterKill()
    #expect(after.entry("a.part") == nil)
    #expect(try after.bytes("d/a.png") == [1, 2])
  }

  @Test func aFileRenamedOverAnotherReplacesIt() throws {
    let fixture = try QueueFixture()
    try fixture.add("new", [2, 2])
    try fixture.add("old", [1])
    try fixture.queue.rename(fixture.name("new"), to: fixture.name("old"), base: .absent)
    #expect(try fixture.bytes("old") == [2, 2])
    #expect(try fixture.afterKill().bytes("old") == [2, 2])
    try fixture.queue.commit()
    #expect(fixture.queue.entries.count == 1)
    #expect(try fixture.kept.count == 2)
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["old"])
    #expect(fixture.store.bytes("photos", "old") == [2, 2])
  }

  @Test func anObjectChangedInPlaceBeginsWithItsBytes() throws {
    let fixture = try QueueFixture()
    let path = try fixture.scratch.file("copy", [1, 2, 3, 4])
    let copy = try File(path, O_RDONLY)
    let file = try fixture.queue.adopt(
      fixture.name("a"), from: copy.descriptor, size: 4,
      NewFile(base: .object(version: "v", tag: nil)))
    try fixture.write(file, [9], at: 3)
    try file.flush()
    file.close()
    #expect(try fixture.bytes("a") == [1, 2, 3, 9])
    #expect(try File.contents(of: path) == [1, 2, 3, 4])
    #expect(throws: Errno.io) {
      _ = try fixture.queue.adopt(
        fixture.name("b"), from: copy.descriptor, size: 5, NewFile(base: .absent))
    }
    #expect(fixture.entry("b") == nil)
  }

  @Test func attributesAreBounded() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    let name = fixture.name("a")
    #expect(throws: Errno.noSpace) {
      try fixture.queue.setAttribute(
        "user.big", [UInt8](repeating: 0, count: PendingQueue.attributeLimit), of: name)
    }
    #expect(throws: Errno.noAttribute) {
      try fixture.queue.setAttribute("user.none", nil, of: name)
    }
    #expect(throws: Errno.noEntry) {
      try fixture.queue.set(PendingAttributes(mode: 0o600), of: fixture.name("none"))
    }
    try fixture.queue.setAttribute("user.x", [1], of: name)
    try fixture.queue.setAttribute("user.x", nil, of: name)
    #expect(fixture.entry("a")?.record.attributes == [:])
  }

  @Test func observersHearOfEachChangeAndOfTheEnd() throws {
    let fixture = try QueueFixture()
    let heard = Locked<[PendingChange]>([])
    fixture.queue.observe { change in heard.withLock { $0.append(change) } }
    try fixture.add("a", [1])
    fixture.drain()
    let changes = heard.withLock { $0 }
    #expect(changes.first == PendingChange(object: fixture.name("a"), kind: .content))
    #expect(changes.last == PendingChange(object: fixture.name("a"), kind: .gone))
  }

  @Test func namesThatAreNotTextComeBackByteForByte() throws {
    let fixture = try QueueFixture()
    let names: [ByteString] = [
      ByteString([0xff, 0xfe]), ByteString("a\u{301}"), ByteString("\u{e1}"), "tab\there", "file~",
      "#file#", ".~lock.x#", ByteString([UInt8](repeating: 0x61, count: 255)),
    ]
    for (index, name) in names.enumerated() { try fixture.add(name, [UInt8(index)]) }
    let after = try fixture.afterKill()
    for (index, name) in names.enumerated() {
      #expect(try after.bytes(name) == [UInt8(index)])
    }
    #expect(after.queue.entries.count == names.count)
  }
}
