import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// How pending files reach the store.
@Suite struct SendingTests {
  @Test func storedFilesAreHandedOverWithTheirBytesAndLeaveTheQueue() throws {
    let fixture = try QueueFixture()
    let time = Timestamp(seconds: 1_234_567_890, nanoseconds: 5)
    try fixture.add("a/b.txt", [1, 2, 3])
    try fixture.queue.set(
      PendingAttributes(modified: time, mode: 0o755), of: fixture.name("a/b.txt"))
    let shown = Locked<Bool?>(nil)
    let queue = fixture.queue
    fixture.receiver.beforeTaking { file in
      shown.withLock { $0 = queue.entry(for: file.object) != nil }
    }
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a/b.txt") == [1, 2, 3])
    #expect(shown.withLock { $0 } == true)
    let file = try #require(fixture.receiver.taken.first)
    #expect(fixture.receiver.taken.count == 1)
    #expect(file.info == fixture.store.facts("photos", "a/b.txt"))
    #expect(file.modified == time)
    #expect(file.mode == 0o755)
    #expect(fixture.receiver.bytes(fixture.name("a/b.txt")) == [1, 2, 3])
    #expect(fixture.entry("a/b.txt") == nil)
    #expect(try fixture.kept.isEmpty)
    #expect(fixture.queue.counts == PendingCounts())
    let facts = try #require(fixture.store.facts("photos", "a/b.txt"))
    #expect(facts.contentType == "text/plain")
    #expect(facts.userMetadata?["mtime"] == "1234567890.000000005")
    #expect(facts.userMetadata?["sha256"] == Digest.hex(.sha256, of: [1, 2, 3]))
  }

  @Test func anOpenReaderGoesOnReadingWhatWasHandedOver() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2, 3])
    let reader = try #require(try fixture.queue.open(fixture.name("a")))
    fixture.drain()
    #expect(fixture.entry("a") == nil)
    #expect(try QueueFixture.read(reader) == [1, 2, 3])
    reader.close()
  }

  @Test func bytesThatNobodyTakesAreDeleted() throws {
    let fixture = try QueueFixture()
    fixture.receiver.declines = true
    try fixture.add("a", [1])
    fixture.drain()
    #expect(try fixture.kept.isEmpty)
  }

  @Test func aNewFileCostsOneUploadAndOneQuestion() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    fixture.drain()
    #expect(fixture.store.requests.map(\.route) == [.put, .info])
  }

  @Test func filesGoOldestFirst() throws {
    let fixture = try QueueFixture()
    for key in ["c", "a", "b"] as [ByteString] { try fixture.add(key, [1]) }
    fixture.drain()
    #expect(fixture.store.requests.filter { $0.route == .put }.map(\.key) == ["c", "a", "b"])
  }

  @Test func fourAreSentAtATimeAndNeverTwoOfOneName() throws {
    let fixture = try QueueFixture()
    let gate = Gate()
    for _ in 0..<4 { fixture.store.inject(.wait(gate), on: .put) }
    for index in 0..<12 { try fixture.add(ByteString("file\(index)"), [1]) }
    try fixture.queue.start(receiver: fixture.receiver)
    gate.awaitArrivals(4)
    // The oldest is on its way; a newer one of its name has to wait for it.
    try fixture.add("file0", [2, 2])
    gate.open()
    #expect(fixture.queue.wait(until: .now + .seconds(30), Cancellation()) == .stored)
    #expect(fixture.store.mostUnderway == 4)
    #expect(fixture.store.overlaps == 0)
    #expect(fixture.store.bytes("photos", "file0") == [2, 2])
    #expect(fixture.store.keys("photos").count == 12)
  }

  @Test func oneUploadAtATimeKeepsTheOrderStrictly() throws {
    let fixture = try QueueFixture()
    try fixture.reopen(uploads: 1)
    let keys = (0..<20).map { ByteString("\(97 - $0)") }
    for key in keys { try fixture.add(key, [1]) }
    try fixture.queue.start(receiver: fixture.receiver)
    #expect(fixture.queue.wait(until: .now + .seconds(30), Cancellation()) == .stored)
    #expect(fixture.store.requests.filter { $0.route == .put }.map(\.key) == keys)
    #expect(fixture.store.mostUnderway == 1)
  }

  @Test func nothingIsSentWhileTheGateIsShut() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    for gate in [UploadGate.offline, .disabled, .signedOut] {
      fixture.gate = gate
      fixture.drain()
      #expect(fixture.queue.wait(until: nil, Cancellation()) == .offline)
    }
    #expect(fixture.store.requests.isEmpty)
    fixture.gate = .open
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1])
  }

  @Test func anotherUsersFilesAreNeitherShownNorSent() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    fixture.queue.setOwner("ben")
    #expect(fixture.entry("a") == nil)
    #expect(fixture.queue.counts.ofOthers == 1)
    try fixture.add("b", [2])
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["b"])
    try fixture.reopen(owner: "ben")
    #expect(fixture.queue.counts.ofOthers == 1)
    fixture.queue.setOwner("anna")
    #expect(fixture.entry("a")?.state == .waiting)
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a", "b"])
  }

  @Test func aLostAnswerIsNotStoredTwice() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    fixture.store.inject(.loseAnswer(StoreError(.connectivity, "cut")), on: .put)
    let until = try #require(fixture.drain())
    #expect(fixture.entry("a")?.state == .waiting)
    #expect(fixture.entry("a")?.record.attempts == 0)
    fixture.now = until + .seconds(2)
    fixture.drain()
    #expect(fixture.entry("a") == nil)
    #expect(fixture.store.requests.filter { $0.route == .put }.count == 1)
    #expect(fixture.store.facts("photos", "a")?.version == "v1")
  }

  @Test func aLostAnswerBeforeAKillIsNotStoredTwiceEither() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    fixture.store.inject(.loseAnswer(StoreError(.connectivity, "cut")), on: .put)
    fixture.drain()
    let after = try fixture.afterKill()
    #expect(after.entry("a")?.state == .waiting)
    after.drain()
    #expect(after.entry("a") == nil)
    #expect(after.store.requests.filter { $0.route == .put }.count == 1)
  }

  @Test func whatIsThereAlreadyWithTheSameBytesCountsAsStored() throws {
    let fixture = try QueueFixture()
    fixture.store.put("photos", "a", [1, 2])
    try fixture.add("a", [1, 2])
    fixture.drain()
    #expect(fixture.entry("a") == nil)
    #expect(fixture.store.facts("photos", "a")?.version == "v1")
  }

  @Test func aFileOfTheSameNameByAnotherWriterIsAConflictAndBothAreKept() throws {
    let fixture = try QueueFixture()
    fixture.store.put("photos", "a", [9])
    try fixture.add("a", [1, 2])
    fixture.drain()
    #expect(fixture.entry("a") == nil)
    #expect(fixture.store.bytes("photos", "a") == [9])
    let copy = try #require(fixture.queue.conflicts.first?.copy)
    #expect(fixture.store.bytes("photos", copy.key) == [1, 2])
  }

  @Test(arguments: [true, false])
  func aReplacementIsSentOnlyOverTheVersionThatWasRead(_ isAtomic: Bool) throws {
    let fixture = try QueueFixture()
    fixture.store.writing = WritingCapabilities(
      atomicCreate: isAtomic, atomicReplace: isAtomic, resumable: nil)
    let read = fixture.store.put("photos", "a", [0])
    try fixture.add("a", [1], base: .object(version: read.version, tag: read.tag))
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1])

    try fixture.add("a", [2], base: .object(version: read.version, tag: read.tag))
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1])
    let copy = try #require(fixture.queue.conflicts.first?.copy)
    #expect(fixture.store.bytes("photos", copy.key) == [2])
  }

  @Test func aBaseThatIsKnownByItsTagAloneIsCompared() throws {
    let fixture = try QueueFixture()
    let read = fixture.store.put("photos", "a", [0])
    try fixture.add("a", [1], base: .object(version: nil, tag: read.tag))
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1])
  }

  @Test func anObjectThatSomebodyDeletedIsStoredAnew() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1], base: .object(version: "v9", tag: nil))
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1])
  }

  @Test func bytesThatTheStoreDamagedAreSentAgain() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2, 3])
    fixture.store.inject(.flip, on: .put)
    let until = try #require(fixture.drain())
    #expect(fixture.entry("a")?.record.failure?.kind == "damaged")
    #expect(fixture.entry("a")?.state == .waiting)
    #expect(fixture.receiver.taken.isEmpty)
    fixture.now = until
    fixture.drain()
    #expect(fixture.entry("a") == nil)
    #expect(fixture.store.bytes("photos", "a") == [1, 2, 3])
  }

  @Test func bytesThatAreNoLongerTheSameAreNotSent() throws {
    let fixture = try QueueFixture()
    let id = try fixture.add("a", [1, 2, 3])
    fixture.store.inject(.fail(StoreError(.server, "500")), on: .put)
    fixture.drain()
    let path = "\(fixture.folder)/\(id).data"
    let file = try File(path, O_WRONLY)
    try [UInt8(7)].withUnsafeBufferPointer { (buffer) throws(Errno) in
      try file.write(UnsafeRawBufferPointer(buffer), at: 0)
    }
    fixture.now = fixture.now + .seconds(60)
    fixture.drain()
    #expect(fixture.entry("a")?.state == .failed)
    #expect(fixture.entry("a")?.record.failure?.kind == PendingFailure.damaged)
    #expect(fixture.store.keys("photos").isEmpty)
  }

  @Test func waitingTellsStoredFailedAndOutOfTime() throws {
    let fixture = try QueueFixture()
    #expect(fixture.queue.wait(until: nil, Cancellation()) == .stored)
    try fixture.add("a", [1])
    #expect(fixture.queue.wait(until: .now + .milliseconds(50), Cancellation()) == .outOfTime)
    let cancellation = Cancellation()
    cancellation.cancel()
    #expect(fixture.queue.wait(until: nil, cancellation) == .outOfTime)
    fixture.store.inject(.fail(StoreError(.refused, "no")), on: .put)
    fixture.drain()
    #expect(fixture.queue.wait(until: nil, Cancellation()) == .failed(1))
    #expect(try fixture.queue.clear() == 1)
    #expect(fixture.queue.wait(until: nil, Cancellation()) == .stored)
  }

  @Test func progressIsShownWhileAFileIsSent() throws {
    let fixture = try QueueFixture()
    let gate = Gate()
    try fixture.add("a", [UInt8](repeating: 1, count: 200_000))
    fixture.store.inject(.answerAfter(gate), on: .put)
    let sender = try fixture.sendInBackground()
    gate.awaitArrivals(1)
    #expect(fixture.entry("a")?.state == .uploading)
    #expect(fixture.entry("a")?.sent == 200_000)
    gate.open()
    sender.join()
    #expect(fixture.entry("a") == nil)
  }
}
