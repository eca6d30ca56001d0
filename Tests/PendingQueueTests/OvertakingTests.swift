import BucketStore
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// Files that are removed, renamed or changed while they are on their way.
@Suite struct OvertakingTests {
  /// When the change comes: before the store has the bytes, or when only its answer is missing.
  enum Moment: CaseIterable {
    case beforeTheStoreHasIt
    case beforeTheAnswer
  }

  private func onTheWay(
    _ fixture: QueueFixture, _ moment: Moment, _ change: () throws -> Void
  ) throws {
    let gate = Gate()
    fixture.store.inject(
      moment == .beforeTheStoreHasIt ? .wait(gate) : .answerAfter(gate), on: .put)
    let sender = try fixture.sendInBackground()
    gate.awaitArrivals(1)
    try change()
    gate.open()
    #expect(sender.join(until: .now + .seconds(30)))
  }

  @Test(arguments: Moment.allCases)
  func aFileRemovedOnItsWayIsNotLeftInTheStore(_ moment: Moment) throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    try onTheWay(fixture, moment) {
      try fixture.queue.remove(fixture.name("a"))
      #expect(fixture.entry("a") == nil)
      #expect(fixture.queue.folder("", in: "photos").deleted == ["a"])
    }
    fixture.drain()
    #expect(fixture.store.keys("photos").isEmpty)
    #expect(try fixture.kept.isEmpty)
    #expect(!fixture.queue.isDeleted(fixture.name("a")))
  }

  /// What is done to a file while the store has all of it, and has not made it an object yet.
  enum Change: CaseIterable {
    case remove
    case rename
    case rewrite
  }

  @Test(arguments: Change.allCases)
  func whatTheStoreHasAllOfIsWaitedFor(_ change: Change) throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    let gate = Gate()
    fixture.store.inject(.commitAfter(gate), on: .put)
    let sender = try fixture.sendInBackground()
    gate.awaitArrivals(1)
    switch change {
    case .remove: try fixture.queue.remove(fixture.name("a"))
    case .rename: try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
    case .rewrite: try fixture.add("a", [2])
    }
    // Long enough for a try that was cut off to be followed by all that comes after it.
    #expect(!sender.join(until: .now + .milliseconds(300)))
    fixture.drain()
    gate.open()
    #expect(sender.join(until: .now + .seconds(30)))
    fixture.store.settle()
    fixture.drain()
    switch change {
    case .remove: #expect(fixture.store.keys("photos") == [])
    case .rename: #expect(fixture.store.keys("photos") == ["b"])
    case .rewrite: #expect(fixture.store.bytes("photos", "a") == [2])
    }
    #expect(try fixture.kept.isEmpty)
  }

  @Test func aStoreThatHasOnlyLookedAtTheBytesIsNotWaitedFor() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    let gate = Gate()
    fixture.store.inject(.lookFirst(gate), on: .put)
    let sender = try fixture.sendInBackground()
    gate.awaitArrivals(1)
    try fixture.queue.remove(fixture.name("a"))
    #expect(sender.join(until: .now + .seconds(30)))
    gate.open()
    fixture.drain()
    #expect(fixture.store.keys("photos").isEmpty)
    #expect(try fixture.kept.isEmpty)
  }

  @Test func aFolderOfNothingButDeletionsIsToldApart() throws {
    let fixture = try QueueFixture()
    try fixture.add("f/a", [1])
    try onTheWay(fixture, .beforeTheAnswer) {
      try fixture.queue.remove(fixture.name("f/a"))
      #expect(fixture.queue.folder("", in: "photos").folders == [])
      #expect(fixture.queue.folder("", in: "photos").emptied == ["f"])
      #expect(fixture.queue.hasDeletions(below: "f/", in: "photos"))
    }
    fixture.drain()
    #expect(!fixture.queue.hasDeletions(below: "f/", in: "photos"))
  }

  @Test func aFileRemovedOnItsWayIsDeletedAlsoAfterAKill() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    let after = Locked<QueueFixture?>(nil)
    try onTheWay(fixture, .beforeTheAnswer) {
      try fixture.queue.remove(fixture.name("a"))
      let copy = try fixture.afterKill()
      after.withLock { $0 = copy }
    }
    let restarted = try #require(after.withLock { $0 })
    #expect(restarted.queue.isDeleted(restarted.name("a")))
    restarted.drain()
    #expect(restarted.store.keys("photos").isEmpty)
    #expect(try restarted.kept.isEmpty)
  }

  @Test func whatAnotherWriterStoredMeanwhileIsNotDeleted() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    try onTheWay(fixture, .beforeTheAnswer) {
      try fixture.queue.remove(fixture.name("a"))
      fixture.store.put("photos", "a", [9])
    }
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [9])
  }

  @Test(arguments: Moment.allCases)
  func aFileRenamedOnItsWayIsUnderTheNewNameOnly(_ moment: Moment) throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    try onTheWay(fixture, moment) {
      try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
      #expect(fixture.entry("a") == nil)
      #expect(fixture.entry("b") != nil)
    }
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["b"])
    #expect(fixture.store.bytes("photos", "b") == [1, 2])
    #expect(try fixture.kept.isEmpty)
  }

  @Test(arguments: Moment.allCases)
  func aFileRenamedAwayAndBackOnItsWayIsStored(_ moment: Moment) throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    try onTheWay(fixture, moment) {
      try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
      try fixture.queue.rename(fixture.name("b"), to: fixture.name("a"), base: .absent)
      #expect(fixture.entry("a") != nil)
    }
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a"])
    #expect(fixture.store.bytes("photos", "a") == [1, 2])
    #expect(try fixture.kept.isEmpty)
  }

  @Test func aTryThatEndsAfterItsFileCameBackToTheNameStoredNothing() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    let id = try #require(fixture.entry("a")).record.id
    let before = try #require(fixture.queue.state.withLock { $0.slots[id]?.record })
    let flight = Flight(before, Call())
    try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
    try fixture.queue.rename(fixture.name("b"), to: fixture.name("a"), base: .absent)
    let after = try #require(fixture.queue.state.withLock { $0.slots[id]?.record })
    #expect(flight.isOf(before))
    #expect(!flight.isOf(after), "what it stored may be deleted by the name's own deletion")
  }

  @Test func aNameLeftOnTheWayCanBeTakenAtOnceByTheSameBytes() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    try onTheWay(fixture, .beforeTheAnswer) {
      try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
      try fixture.add("a", [1, 2])
    }
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a", "b"])
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1, 2])
    #expect(try fixture.kept.isEmpty)
  }

  @Test(arguments: Moment.allCases)
  func aFileChangedOnItsWayEndsWithTheNewerBytes(_ moment: Moment) throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2, 3])
    try onTheWay(fixture, moment) {
      let file = try fixture.queue.edit(fixture.name("a"))
      try fixture.write(file, [9], at: 1)
      try file.flush()
      file.close()
      #expect(try fixture.bytes("a") == [1, 9, 3])
    }
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1, 9, 3])
    #expect(fixture.receiver.taken.map(\.sha256) == [Digest.hex(.sha256, of: [1, 9, 3])])
    #expect(try fixture.kept.isEmpty)
    #expect(fixture.queue.counts == PendingCounts())
  }

  @Test(arguments: Moment.allCases)
  func aFileReplacedOnItsWayEndsWithTheNewerBytes(_ moment: Moment) throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2, 3])
    try onTheWay(fixture, moment) { try fixture.add("a", [7]) }
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [7])
    #expect(try fixture.kept.isEmpty)
    #expect(fixture.store.overlaps == 0)
  }

  @Test func aSaveByRenameOverAFileOnItsWayEndsWithTheNewerBytes() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2, 3])
    try onTheWay(fixture, .beforeTheAnswer) {
      try fixture.add("a.new", [7])
      try fixture.queue.rename(fixture.name("a.new"), to: fixture.name("a"), base: .absent)
    }
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a"])
    #expect(fixture.store.bytes("photos", "a") == [7])
    #expect(try fixture.kept.isEmpty)
  }

  @Test func aFileBeingReplacedIsNotSentMeanwhile() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    let file = try fixture.queue.edit(fixture.name("a"), keepingBytes: false)
    try fixture.write(file, [2])
    fixture.drain()
    #expect(fixture.store.requests.isEmpty)
    file.close()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [2])
    #expect(fixture.store.requests.filter { $0.route == .put }.count == 1)
  }

  @Test func aFileWrittenAndRenamedIsSentOnceUnderItsLastName() throws {
    let fixture = try QueueFixture()
    try fixture.add(".a.part", [1])
    try fixture.queue.rename(fixture.name(".a.part"), to: fixture.name("a"), base: .absent)
    fixture.drain()
    #expect(fixture.store.requests.filter { $0.route == .put }.map(\.key) == ["a"])
    #expect(fixture.store.keys("photos") == ["a"])
  }

  @Test func aRenameThatFollowsALostAnswerCleansUpTheOldName() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    fixture.store.inject(.loseAnswer(StoreError(.connectivity, "cut")), on: .put)
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a"])
    try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
    let killed = try fixture.afterKill()
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["b"])
    killed.drain()
    #expect(killed.store.keys("photos") == ["b"])
    #expect(try killed.kept.isEmpty)
  }

  @Test func aFileRemovedAfterALostAnswerIsDeletedFromTheStore() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    fixture.store.inject(.loseAnswer(StoreError(.connectivity, "cut")), on: .put)
    fixture.drain()
    try fixture.queue.remove(fixture.name("a"))
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.keys("photos").isEmpty)
    #expect(fixture.receiver.changed == [fixture.name("a")])
  }
}
