import BucketStore
import FileCache
import FileSystem
import Foundation
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// Changes of names and bytes, and what the store has in the end.
@Suite struct WritingTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture(writing: true) { options in
      options.names = KeyNames(KeyEncoding.encode)
    }
    fixture.store.createBucket("b")
  }

  @Test func namesThatCannotBeAreRefusedWhenTheyAreMade() throws {
    for name: ByteString in ["a\\b", "a\nb", ".emptyFolderPlaceholder"] {
      #expect(fixture.errno { _ = try fixture.create("b/" + name) } == .invalid)
      #expect(fixture.errno { try fixture.makeFolder("b/" + name) } == .invalid)
    }
    let long = ByteString([UInt8](repeating: 0x61, count: 256))
    #expect(fixture.errno { _ = try fixture.create("b/" + long) } == .nameTooLong)
    #expect(fixture.errno { try fixture.put("b/ok", [1]) } == nil)
    #expect(fixture.errno { try fixture.rename("b/ok", to: "b/no\\t") } == .invalid)
    #expect(fixture.errno { _ = try fixture.create("beside") } == .notPermitted)
    #expect(fixture.errno { try fixture.makeFolder("bucket") } == .notPermitted)
    #expect(try fixture.names("b") == ["ok"])
  }

  @Test func namesThatTheStoreCannotHoldAreRefusedWhereTheyAreNotEncoded() throws {
    let strict = try TreeFixture(writing: true) { $0.names = KeyNames(KeyEncoding.strict) }
    strict.store.createBucket("b")
    #expect(strict.errno { _ = try strict.create("b/ü") } == .illegalSequence)
    try fixture.put("b/ü", [1])
    #expect(try fixture.drain() == .stored)
    #expect(fixture.keys() == ["=C3=BC"])
    #expect(try fixture.names("b") == ["ü"])
  }

  @Test func anObjectIsChangedFromItsFirstWriteOn() throws {
    fixture.store.put("b", "a", Array("hello".utf8))
    let handle = try fixture.tree.open(
      fixture.inode("b/a"), flags: O_RDWR, TreeFixture.slow)
    #expect(try fixture.queue.isEmpty)
    try fixture.write(handle, Array("J".utf8))
    #expect(try fixture.read(handle) == Array("Jello".utf8))
    #expect(try fixture.state("b/a") == "writing")
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "a") == Array("Jello".utf8))
  }

  @Test func whoWasFirstIsNotOverwritten() throws {
    fixture.store.put("b", "a", [1])
    fixture.hold()
    let handle = try fixture.tree.open(fixture.inode("b/a"), flags: O_RDWR, TreeFixture.slow)
    try fixture.write(handle, [2])
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    fixture.store.put("b", "a", [3])
    try fixture.goOnline()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "a") == [3])
    // The name shows the other one's at once, whatever the kept listing says.
    #expect(try fixture.contents("b/a") == [3])
    let copy = try #require(fixture.names("b").first { $0 != "a" })
    #expect(try fixture.contents("b/" + copy) == [2])
    #expect(fixture.kernel.names.contains("a"))
    fixture.tree.listings.distrust()
    #expect(try fixture.names("b") == [copy, "a"].sorted())
  }

  @Test func aRefusedFileSaysThatItFailed() throws {
    fixture.store.fail(.put, with: StoreError(.refused, "not yours"))
    try fixture.put("b/a", [1])
    #expect(try fixture.drain() == .failed(1))
    #expect(try fixture.state("b/a") == "failed")
  }

  @Test func withNoNetworkWhatIsOnlyHereCanBeChangedAndWhatTheStoreHasCannotBeMoved() throws {
    fixture.store.put("b", "stored", [1])
    fixture.store.put("b", "folder/x", [1])
    _ = try fixture.contents("b/stored")
    _ = try fixture.names("b/folder")
    fixture.goOffline()
    try fixture.put("b/new", [1])
    try fixture.makeFolder("b/made")
    try fixture.put("b/made/file", [2])
    try fixture.rename("b/new", to: "b/made/new")
    try fixture.rename("b/made", to: "b/renamed")
    try fixture.put("b/gone", [3])
    try fixture.remove("b/gone")
    #expect(try fixture.names("b/renamed") == ["file", "new"])
    let handle = try fixture.tree.open(fixture.inode("b/stored"), flags: O_RDWR, TreeFixture.slow)
    try fixture.write(handle, [2], at: 1)
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.contents("b/stored") == [1, 2])
    for path: ByteString in ["b/stored", "b/folder/x"] {
      #expect(fixture.errno { try fixture.remove(path) } == .networkUnreachable)
      #expect(
        fixture.errno { try fixture.rename(path, to: "b/other") } == .networkUnreachable)
    }
    try fixture.goOnline()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.keys() == ["folder/x", "renamed/file", "renamed/new", "stored"])
    #expect(fixture.store.bytes("b", "stored") == [1, 2])
    try fixture.remove("b/stored")
    #expect(fixture.store.bytes("b", "stored") == nil)
  }

  @Test func whatIsPendingIsSeenAndReadWhereNothingIsKeptAndNothingCanBeAsked() throws {
    fixture.store.createBucket("c")
    fixture.goOffline()
    fixture.store.outage = nil
    try fixture.put("b/p.txt", [1])
    try fixture.makeFolder("b/made")
    try fixture.makeFolder("b/made/in")
    try fixture.put("b/made/in/q.txt", [2])
    fixture.store.outage = StoreError(.connectivity, "no route")
    fixture.tree.listings.clear()
    try fixture.cache.clear()
    for _ in 0..<2 {
      #expect(try fixture.names("") == ["b"])
      #expect(try fixture.names("b") == ["made", "p.txt"])
      #expect(try fixture.names("b/made/in") == ["q.txt"])
      #expect(try fixture.contents("b/p.txt") == [1])
      #expect(try fixture.contents("b/made/in/q.txt") == [2])
      #expect(
        fixture.errno { _ = try fixture.find("c") } == .networkUnreachable,
        "there may be other buckets")
      #expect(fixture.errno { _ = try fixture.find("c/x") } == .networkUnreachable)
      try fixture.remount()
    }
    try fixture.goOnline()
    #expect(try fixture.names("") == ["b", "c"])
    #expect(try fixture.drain() == .stored)
    #expect(fixture.keys() == ["made/in/q.txt", "p.txt"])
    #expect(try fixture.names("b") == ["made", "p.txt"])
    #expect(try fixture.names("") == ["b", "c"])
  }

  @Test func savingByRenameKeepsTheStoresVersionInMind() throws {
    fixture.store.put("b", "doc", [1])
    fixture.goOffline()
    #expect(fixture.errno { _ = try fixture.find("b/doc") } == .networkUnreachable)
    fixture.store.outage = nil
    #expect(try fixture.find("b/doc") != nil)
    fixture.store.outage = StoreError(.connectivity, "no route")
    try fixture.put("b/doc.tmp", [2])
    try fixture.rename("b/doc.tmp", to: "b/doc")
    #expect(try fixture.names("b") == ["doc"])
    try fixture.goOnline()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "doc") == [2])
    #expect(fixture.keys() == ["doc"])
  }

  @Test func aFolderThatTheStoreHasIsForProgramsToCopy() throws {
    fixture.store.put("b", "folder/x", [1])
    #expect(fixture.errno { try fixture.rename("b/folder", to: "b/other") } == .crossDevice)
    #expect(fixture.errno { try fixture.rename("b/folder", to: "b/folder/in") } == .invalid)
  }

  @Test func renamingKeepsItsFlags() throws {
    fixture.store.put("b", "stored", [1])
    try fixture.put("b/new", [2])
    for (from, to): (ByteString, ByteString) in [("b/new", "b/stored"), ("b/stored", "b/new")] {
      #expect(fixture.errno { try fixture.rename(from, to: to, flags: 1) } == .exists)
      #expect(fixture.errno { try fixture.rename(from, to: to, flags: 2) } == .invalid)
    }
    try fixture.rename("b/stored", to: "b/moved", flags: 1)
    #expect(fixture.store.bytes("b", "moved") == [1])
    #expect(fixture.store.bytes("b", "stored") == nil)
  }

  @Test func aStoredFileReplacesAPendingOneAndNothingIsLost() throws {
    fixture.store.put("b", "stored", [1])
    fixture.hold()
    try fixture.put("b/new", [2])
    try fixture.rename("b/stored", to: "b/new")
    #expect(try fixture.contents("b/new") == [1])
    #expect(try fixture.names("b") == ["new"])
    try fixture.goOnline()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.keys() == ["new"])
    #expect(fixture.store.bytes("b", "new") == [1])
  }

  @Test func aRefusedRemovalLeavesTheFile() throws {
    fixture.store.put("b", "a", [1])
    fixture.store.fail(.delete, with: StoreError(.refused, "not yours"))
    #expect(fixture.errno { try fixture.remove("b/a") } == .permission)
    #expect(try fixture.names("b") == ["a"])
    #expect(try fixture.contents("b/a") == [1])
  }

  @Test func aFolderStaysWhenItsLastFileGoes() throws {
    fixture.store.put("b", "folder/x", [1])
    fixture.store.put("b", "folder/y", [1])
    try fixture.remove("b/folder/x")
    try fixture.remove("b/folder/y")
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.keys("b") == ["folder/.emptyFolderPlaceholder"])
    fixture.tree.listings.distrust()
    #expect(try fixture.names("b") == ["folder"])
    #expect(try fixture.names("b/folder") == [])
    try fixture.removeFolder("b/folder")
    #expect(fixture.store.keys("b") == [])
    #expect(try fixture.names("b") == [])
  }

  @Test func aFolderThatTheStoreDoesNotDeleteIsNotSaidToBeGone() throws {
    fixture.store.put("b", "folder/.emptyFolderPlaceholder", [])
    #expect(try fixture.names("b/folder") == [])
    fixture.store.inject(.cut(after: 0), on: .delete)
    #expect(fixture.errno { try fixture.removeFolder("b/folder") } == .permission)
    #expect(try fixture.names("b") == ["folder"])
    try fixture.removeFolder("b/folder")
    #expect(try fixture.names("b") == [])
  }

  @Test func aFolderOfWhatCannotBeShownIsNotEmpty() throws {
    fixture.store.put("b", "folder/a\\b", [1])
    fixture.store.put("b", "folder/.emptyFolderPlaceholder", [])
    #expect(try fixture.names("b/folder") == [])
    #expect(fixture.errno { try fixture.removeFolder("b/folder") } == .notEmpty)
  }

  @Test func whatWasSetOfAFileIsOfThatVersionAlone() throws {
    fixture.store.put("b", "a", [1])
    try fixture.set("b/a") { $0.mode = 0o755 }
    try fixture.set("b/a") { $0.modified = Timestamp(seconds: 5) }
    try fixture.remount()
    let shown = try #require(try fixture.find("b/a")).attributes
    #expect(shown.mode & 0o777 == 0o755 && shown.modified == Timestamp(seconds: 5))
    fixture.store.put("b", "a", [1, 2])
    fixture.tree.listings.distrust()
    let other = try #require(try fixture.find("b/a")).attributes
    #expect(other.mode & 0o777 == 0o644 && other.modified != Timestamp(seconds: 5))
  }

  @Test func otherOwnersAreRefused() throws {
    try fixture.put("b/a", [1])
    #expect(fixture.errno { try fixture.set("b/a") { $0.uid = 7 } } == nil)
    #expect(fixture.errno { try fixture.set("b/a") { $0.uid = 12 } } == .notPermitted)
    #expect(fixture.errno { try fixture.set("b/a") { $0.gid = 12 } } == .notPermitted)
  }

  @Test func writingNeverRunsWhereNothingMayWait() throws {
    fixture.store.put("b", "a", [1])
    let inode = try fixture.inode("b/a")
    let folder = try fixture.inode("b")
    let fast = TreeFixture.fast
    let tree = fixture.tree
    let handle = try tree.open(inode, flags: O_RDWR, TreeFixture.slow)
    func lane(_ body: () throws -> Void) -> Lane? {
      do {
        try body()
        return nil
      } catch {
        return (error as? Failure)?.lane
      }
    }
    #expect(lane { try tree.remove("a", from: folder, fast) } != nil)
    #expect(lane { try tree.removeFolder("a", from: folder, fast) } != nil)
    #expect(lane { try tree.rename("a", in: folder, to: "c", in: folder, flags: 0, fast) } != nil)
    #expect(lane { _ = try tree.makeFolder("c", in: folder, mode: 0o755, fast) } != nil)
    #expect(lane { try tree.allocate(handle, mode: 0, at: 0, length: 5, fast) } != nil)
    try fixture.write(handle, [2])
    #expect(lane { try tree.sync(handle, fast) } != nil)
    let bytes: [UInt8] = [3]
    try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in
      try tree.write(handle, UnsafeRawBufferPointer(bytes), at: 0, fast)
    }
    try tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.contents("b/a") == [3])
  }

  /// What readdirplus said of the time before a removal or a write would be believed by the kernel.
  @Test(arguments: [true, false])
  func anOpenFolderTellsTheKernelWhatWasWrittenSince(_ isStored: Bool) throws {
    if !isStored { fixture.hold() }
    try fixture.put("b/grown", [])
    try fixture.put("b/gone", [1])
    try fixture.makeFolder("b/left")
    try fixture.put("b/left/inner", [1])
    if isStored { #expect(try fixture.drain() == .stored) }
    let tree = fixture.tree
    let handle = try tree.openDirectory(fixture.inode("b"), TreeFixture.slow)
    #expect((2..<handle.count).map { handle[$0].name } == ["gone", "grown", "left"])
    func told() -> [Int64?] {
      (2..<5).map { tree.reference($0, of: handle)?.attributes.size }
    }
    #expect(told() == [1, 0, 0])
    try fixture.put("b/grown", [1, 2, 3])
    try fixture.remove("b/gone")
    try fixture.remove("b/left/inner")
    try fixture.removeFolder("b/left")
    #expect(told() == [nil, 3, nil])
    if isStored {
      #expect(try fixture.drain() == .stored)
      #expect(told() == [nil, 3, nil])
    }
  }

  /// A copy is as the store had the object before; after a change there it is nobody's.
  @Test func aChangeThatReachedTheStoreDropsTheCopiesAndARefusedOneKeepsThem() throws {
    let names: [ByteString] = ["kept", "moved", "over", "removed", "replaced"]
    for name in names { fixture.store.put("b", name, name.bytes) }
    for name in names { #expect(try fixture.contents("b/" + name) == name.bytes) }
    func copy(_ name: ByteString) throws -> [UInt8]? {
      try fixture.cache.copy(of: ObjectName(bucket: "b", key: name)).map { copy in
        [UInt8](try Data(contentsOf: URL(filePath: copy.path.description)))
      }
    }
    // A copy is put in place behind the reader's back.
    for _ in 0..<1000 where fixture.cache.usage.files < names.count { usleep(10_000) }
    for name in names { #expect(try copy(name) == name.bytes) }
    try fixture.remove("b/removed")
    #expect(try copy("removed") == nil)
    try fixture.rename("b/moved", to: "b/over")
    #expect(try copy("moved") == nil)
    #expect(try copy("over") != ByteString("over").bytes)
    #expect(try fixture.contents("b/over") == ByteString("moved").bytes)
    try fixture.put("b/replaced", [1, 2, 3])
    #expect(try fixture.drain() == .stored)
    #expect(try copy("replaced") == [1, 2, 3])
    fixture.store.fail(.delete, with: StoreError(.refused, "not yours"))
    #expect(fixture.errno { try fixture.remove("b/kept") } == .permission)
    #expect(try copy("kept") == ByteString("kept").bytes)
  }
}
