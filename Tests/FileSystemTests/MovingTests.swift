import BucketStore
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// Names that change while files are being stored, or while others store theirs.
@Suite struct MovingTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture(writing: true)
    fixture.store.createBucket("b")
  }

  private func edit(_ path: ByteString, _ bytes: [UInt8]) throws {
    let handle = try fixture.tree.open(fixture.inode(path), flags: O_RDWR, TreeFixture.slow)
    defer { handle.close() }
    try fixture.write(handle, bytes)
    try fixture.tree.flush(handle, TreeFixture.slow)
  }

  /// Runs a change of names on a thread of its own.
  private func start(_ body: @escaping @Sendable (FileSystem, UInt64) throws(Failure) -> Void)
    throws -> (Platform.Thread, Locked<Errno?>)
  {
    let tree = fixture.tree
    let folder = try fixture.inode("b")
    let failure = Locked<Errno?>(nil)
    let thread = try Platform.Thread(name: "mover") {
      do throws(Failure) {
        try body(tree, folder)
      } catch {
        failure.withLock { $0 = error.errno }
      }
    }
    return (thread, failure)
  }

  @Test func aFileThatIsRenamedWhileItIsSentIsNeverDeletedEverywhere() throws {
    fixture.store.put("b", "a", [1])
    let (sending, deleting) = (Gate(), Gate())
    fixture.store.inject(.wait(sending), on: .put)
    try edit("b/a", [2])
    sending.awaitArrivals(1)
    fixture.store.inject(.wait(deleting), on: .delete)
    let (thread, failure) = try start { (tree, folder) throws(Failure) in
      try tree.rename("a", in: folder, to: "c", in: folder, flags: 0, TreeFixture.slow)
    }
    deleting.awaitArrivals(1)
    sending.open()
    #expect(try fixture.queue.wait(until: .now + .seconds(5), Cancellation()) != .failed(1))
    deleting.open()
    thread.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(try fixture.drain() == .stored)
    #expect(fixture.keys() == ["c"])
    #expect(fixture.store.bytes("b", "c") == [2])
    #expect(try fixture.contents("b/c") == [2])
  }

  @Test func aFileWhoseOldNameCannotBeDeletedKeepsIt() throws {
    fixture.store.put("b", "a", [1])
    fixture.hold()
    try edit("b/a", [2])
    fixture.store.fail(.delete, with: StoreError(.refused, "not yours"))
    #expect(fixture.errno { try fixture.rename("b/a", to: "b/c") } == .permission)
    #expect(try fixture.names("b") == ["a"])
    #expect(try fixture.contents("b/a") == [2])
    fixture.store.fail(.delete, with: nil)
    try fixture.goOnline()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.keys() == ["a"])
    #expect(fixture.store.bytes("b", "a") == [2])
  }

  @Test func whatThisDeviceTakesForCopyingIsNoSilenceOfTheStore() throws {
    fixture.store.put("b", "a", [1])
    #expect(try fixture.contents("b/a") == [1])
    fixture.hold()
    try fixture.put("b/c", [2])
    let folder = try fixture.inode("b")
    // As if copying had taken all the time that there is.
    let pulse = Pulse(Instant(nanoseconds: Instant.now.nanoseconds - 3_600_000_000_000))
    let caller = Caller(
      processID: 1, lane: .slow, call: Call(timeout: .seconds(600), pulse: pulse))
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .delete)
    let (thread, failure) = try start { (tree, _) throws(Failure) in
      try tree.rename("a", in: folder, to: "c", in: folder, flags: 0, caller)
    }
    gate.awaitArrivals(1)
    let last = pulse.last
    gate.open()
    thread.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(Instant.now.since(last) < .seconds(1800), "the deletion begins with no time left")
    #expect(try fixture.contents("b/c") == [1])
  }

  @Test func anotherWritersNewerVersionIsNotDeletedByARenaming() throws {
    fixture.store.put("b", "a", [1])
    #expect(try fixture.contents("b/a") == [1])
    fixture.hold()
    try fixture.put("b/c", [2])
    fixture.store.put("b", "a", [3])
    #expect(fixture.errno { try fixture.rename("b/a", to: "b/c") } == .stale)
    #expect(fixture.store.bytes("b", "a") == [3])
    #expect(try fixture.contents("b/c") == [2])
  }

  @Test func whatWasMovedIsShownThoughTheStoreFallsSilentAfterIt() throws {
    fixture.store.put("b", "a", [1])
    fixture.store.put("b", "c", [2, 2])
    #expect(try fixture.contents("b/c") == [2, 2])
    fixture.store.fail(.info, with: StoreError(.connectivity, "no route"))
    try fixture.rename("b/a", to: "b/c")
    fixture.store.fail(.info, with: nil)
    #expect(try fixture.names("b") == ["c"])
    #expect(try fixture.contents("b/c") == [1])
  }

  @Test func aCopyIsDroppedOnceAnotherFileHasTakenItsName() throws {
    fixture.store.put("b", "a", [1])
    fixture.store.put("b", "c", [2, 2])
    #expect(try fixture.contents("b/c") == [2, 2])
    fixture.store.fail(.delete, with: StoreError(.refused, "not yours"))
    #expect(fixture.errno { try fixture.rename("b/a", to: "b/c") } == .permission)
    #expect(try fixture.contents("b/c") == [1])
    #expect(try fixture.contents("b/a") == [1])
  }

  @Test func aRemovedFolderIsGoneThoughWhatKeepsItWasJustStored() throws {
    fixture.store.put("b", "d/x", [1])
    _ = try fixture.names("b/d")
    let (sending, deleting) = (Gate(), Gate())
    fixture.store.inject(.wait(sending), on: .put)
    try fixture.remove("b/d/x")
    sending.awaitArrivals(1)
    fixture.store.inject(.answerAfter(deleting), on: .delete)
    let (thread, failure) = try start { (tree, folder) throws(Failure) in
      try tree.removeFolder("d", from: folder, TreeFixture.slow)
    }
    deleting.awaitArrivals(1)
    sending.open()
    #expect(try fixture.drain() == .stored)
    deleting.open()
    thread.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(fixture.store.keys("b") == [])
    #expect(try fixture.names("b") == [])
  }

  @Test func aFolderIsRenamedWholeOrNotAtAllWhereTheStoreMayNotBeWaitedFor() throws {
    fixture.hold()
    try fixture.makeFolder("b/d")
    try fixture.put("b/d/x", [1])
    try fixture.put("b/d/y", [2])
    let folder = try fixture.inode("b")
    #expect(throws: Failure.mustWait) {
      try fixture.tree.rename(
        "d", in: folder, to: "e", in: folder, flags: 0, TreeFixture.brief)
    }
    #expect(try fixture.names("b/d") == ["x", "y"])
    try fixture.rename("b/d", to: "b/e")
    #expect(try fixture.names("b") == ["e"])
    #expect(try fixture.names("b/e") == ["x", "y"])
  }
}
