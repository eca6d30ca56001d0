import BucketStore
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// Names whose file the store has, or is getting, when they are removed or given to another file.
@Suite struct StoredNamesTests {
  private let fixture: TreeFixture
  private let lost = StoreError(.connectivity, "cut")

  init() throws {
    fixture = try TreeFixture(writing: true)
    fixture.store.createBucket("b")
  }

  @Test func whatIsChangedRightAfterARenamingIsNoConflictWithIt() throws {
    fixture.store.put("b", "a", [1])
    #expect(try fixture.names("b") == ["a"])
    fixture.store.fail(.info, with: StoreError(.connectivity, "cut"))
    try fixture.rename("b/a", to: "b/c")
    fixture.store.fail(.info, with: nil)
    fixture.goOffline()
    try fixture.put("b/c", [2])
    try fixture.goOnline()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.keys() == ["c"])
    #expect(fixture.store.bytes("b", "c") == [2])
  }

  @Test func aFileIsRenamedOverOneThatWasStoredAtThisMoment() throws {
    fixture.store.put("b", "a", [1])
    _ = try fixture.names("b")
    fixture.store.put("b", "c", [2, 2])
    try fixture.rename("b/a", to: "b/c")
    #expect(fixture.keys() == ["c"])
    #expect(try fixture.contents("b/c") == [1])
  }

  @Test func aFileIsNotRenamedOverOneThatWasStoredWhereNothingIsToBeReplaced() throws {
    fixture.store.put("b", "a", [1])
    _ = try fixture.names("b")
    fixture.store.put("b", "c", [2, 2])
    #expect(fixture.errno { try fixture.rename("b/a", to: "b/c", flags: 1) } == .exists)
    #expect(fixture.store.bytes("b", "c") == [2, 2])
    #expect(fixture.store.bytes("b", "a") == [1])
  }

  @Test(arguments: [MemoryStore.Request.Route.move, .copy, .delete])
  func aRenameWhoseAnswerIsLostIsDone(_ route: MemoryStore.Request.Route) throws {
    fixture.store.put("b", "a", [1])
    if route != .move { fixture.store.put("b", "c", [2, 2]) }
    _ = try fixture.names("b")
    fixture.store.inject(.loseAnswer(lost), on: route)
    try fixture.rename("b/a", to: "b/c")
    #expect(fixture.keys() == ["c"])
    // Nobody else wrote it: what is written to it next is no conflict.
    try fixture.put("b/c", [3])
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "c") == [3])
  }

  @Test func aRemovedFolderDoesNotComeBackWhileItsFilesAreOnTheirWay() throws {
    let gate = Gate()
    try fixture.makeFolder("b/T")
    try fixture.makeFolder("b/T/sub")
    try fixture.put("b/T/sub/old", [1])
    #expect(try fixture.drain() == .stored)
    for _ in 0..<4 { fixture.store.inject(.commitAfter(gate), on: .put) }
    let names = (0..<4).map { ByteString("b/T/sub/\($0)") }
    for name in names { try fixture.put(name, [2]) }
    gate.awaitArrivals(4)
    for name in names + ["b/T/sub/old"] { try fixture.remove(name) }
    try fixture.removeFolder("b/T/sub")
    try fixture.removeFolder("b/T")
    #expect(try fixture.names("b") == [])
    // The store has them for a moment, and shows them to whoever asks.
    let deleting = Gate()
    for _ in 0..<4 { fixture.store.inject(.wait(deleting), on: .delete) }
    gate.open()
    deleting.awaitArrivals(1)
    fixture.tree.listings.distrust()
    #expect(try fixture.names("b") == [])
    #expect(try fixture.find("b/T") == nil)
    deleting.open()
    #expect(try fixture.drain() == .stored)
    fixture.store.settle()
    fixture.tree.listings.distrust()
    #expect(try fixture.names("b") == [])
    #expect(fixture.store.keys("b") == [])
  }
}
