import BucketStore
import FileCache
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// What is seen of a file from its first byte until the store has it, and after.
@Suite struct HandOverTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture(writing: true)
    fixture.store.createBucket("b")
  }

  @Test func aFileIsTheSameBeforeDuringAndAfterItsUpload() throws {
    try fixture.put("b/a", [1, 2, 3])
    try fixture.set("b/a") { changes in
      changes.modified = Timestamp(seconds: 1_000_000_000, nanoseconds: 7)
      changes.mode = 0o755
    }
    let before = try #require(try fixture.find("b/a")).attributes
    let reader = try fixture.open("b/a")
    #expect(try fixture.drain() == .stored)
    #expect(try fixture.queue.isEmpty)
    let after = try #require(try fixture.find("b/a")).attributes
    #expect(after == before)
    #expect(after.modified == Timestamp(seconds: 1_000_000_000, nanoseconds: 7))
    #expect(try fixture.tree.attributes(of: after.inode, TreeFixture.slow).attributes == before)
    #expect(try fixture.read(reader) == [1, 2, 3])
    reader.close()
    #expect(try fixture.contents("b/a") == [1, 2, 3])
    #expect(try fixture.state("b/a") == "cached")
    #expect(fixture.store.requests.filter { $0.route == .get }.isEmpty)
    try fixture.remount()
    #expect(try #require(try fixture.find("b/a")).attributes == before)
  }

  @Test func eachNameShowsOnceAtEveryMomentWhileFilesAreSent() throws {
    let names = (0..<150).map { ByteString("file-\($0)") }
    let made = Locked(Set<ByteString>())
    let isDone = Locked(false)
    let tree = fixture.tree
    let folder = try fixture.inode("b")
    let wrong = Locked<[String]>([])
    let looker = try Platform.Thread(name: "looker") {
      while !isDone.withLock({ $0 }) {
        let known = made.withLock { $0 }
        do throws(Failure) {
          let handle = try tree.openDirectory(folder, TreeFixture.slow)
          let shown = (2..<handle.count).map { handle[$0].name }
          handle.close()
          let missing = known.subtracting(shown)
          if Set(shown).count != shown.count || !missing.isEmpty {
            wrong.withLock { $0.append("twice or not: \(missing)") }
          }
          for name in known {
            guard case .found = try tree.lookup(name, in: folder, TreeFixture.slow) else {
              wrong.withLock { $0.append("not found: \(name)") }
              continue
            }
          }
        } catch {
          wrong.withLock { $0.append(error.message) }
        }
      }
    }
    for name in names {
      try fixture.put("b/" + name, Array(name.bytes))
      made.withLock { _ = $0.insert(name) }
    }
    #expect(try fixture.drain() == .stored)
    // The listing that is asked for from here on knows them by itself.
    fixture.tree.listings.distrust()
    #expect(try fixture.names("b").count == names.count)
    isDone.withLock { $0 = true }
    looker.join()
    #expect(wrong.withLock { $0 } == [])
    #expect(Set(fixture.keys()) == Set(names))
  }

  @Test func aListingThatWasOnItsWayDoesNotHideWhatWasStoredMeanwhile() throws {
    let fixture = try TreeFixture(writing: true)
    fixture.store.createBucket("b")
    fixture.store.capabilities = StoreCapabilities(flatListing: false, pageSize: 2)
    for key: ByteString in ["m", "n", "o", "p"] { fixture.store.put("b", key, [0]) }
    let handle = try fixture.create("b/a")
    try fixture.write(handle, [1])
    let folder = try fixture.inode("b")
    fixture.tree.listings.distrust()
    let gate = Gate()
    // The first page is given at once, the second once the gate opens.
    fixture.store.inject(.flip, on: .list)
    fixture.store.inject(.wait(gate), on: .list)
    let tree = fixture.tree
    let shown = Locked<[ByteString]>([])
    let looker = try Platform.Thread(name: "looker") {
      do throws(Failure) {
        let handle = try tree.openDirectory(folder, TreeFixture.slow)
        shown.withLock { $0 = (2..<handle.count).map { handle[$0].name } }
        handle.close()
      } catch {
        Issue.record("\(error)")
      }
    }
    gate.awaitArrivals(1)
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.drain() == .stored)
    gate.open()
    looker.join()
    #expect(shown.withLock { $0 } == ["a", "m", "n", "o", "p"])
    #expect(try fixture.find("b/a") != nil)
  }

  @Test func whatWasStoredIsShownFromTheKeptListingWithNoNetwork() throws {
    _ = try fixture.names("b")
    try fixture.makeFolder("b/new")
    try fixture.put("b/new/file", [1, 2])
    #expect(try fixture.drain() == .stored)
    fixture.goOffline()
    try fixture.remount()
    #expect(try fixture.names("b") == ["new"])
    #expect(try fixture.names("b/new") == ["file"])
    #expect(try fixture.contents("b/new/file") == [1, 2])
  }

  @Test func aFileWrittenAgainWhileItIsSentEndsWithTheNewerBytes() throws {
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .put)
    try fixture.put("b/a", [1])
    gate.awaitArrivals(1)
    let inode = try fixture.inode("b/a")
    let reader = try fixture.open("b/a")
    let handle = try fixture.tree.open(inode, flags: O_WRONLY | O_APPEND, TreeFixture.slow)
    try fixture.write(handle, [2], at: 1)
    #expect(try fixture.read(reader) == [1, 2])
    gate.open()
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "a") == [1, 2])
    #expect(try fixture.inode("b/a") == inode)
    #expect(try fixture.contents("b/a") == [1, 2])
    reader.close()
  }

  @Test func whatAVerbRemovesIsToldToTheKernel() throws {
    fixture.hold()
    try fixture.put("b/a", [1])
    #expect(fixture.kernel.names == [])
    try fixture.queue.remove(ObjectName(bucket: "b", key: "a"))
    #expect(fixture.kernel.names == ["a"])
    #expect(try fixture.find("b/a") == nil)
  }
}
