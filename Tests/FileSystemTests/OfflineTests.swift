import BucketStore
import FileSystem
import Glibc
import Platform
import TestSupport
import Testing

/// What is seen when the store cannot be asked.
@Suite struct OfflineTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture(maxAge: .zero)
    fixture.store.createBucket("b")
    fixture.store.put("b", "seen/read", [1, 2, 3])
    fixture.store.put("b", "seen/listed", [4])
    fixture.store.put("b", "unseen/x", [5])
    _ = try fixture.contents("b/seen/read")
    _ = try fixture.names("b/seen")
    // A copy is put in place behind the reader's back.
    for _ in 0..<500 where fixture.cache.usage.files == 0 { usleep(10_000) }
  }

  @Test func whatWasSeenIsSeenAgainAlsoAfterARemount() throws {
    fixture.store.outage = StoreError(.offline, "offline")
    for _ in 0..<2 {
      #expect(try fixture.names("") == ["b"])
      #expect(try fixture.names("b") == ["seen", "unseen"])
      #expect(try fixture.names("b/seen") == ["listed", "read"])
      #expect(try fixture.contents("b/seen/read") == [1, 2, 3])
      #expect(try fixture.find("b/seen/none") == nil)
      try fixture.remount()
    }
  }

  @Test(arguments: [
    (StoreError.Kind.offline, Errno.networkUnreachable), (.connectivity, .networkUnreachable),
    (.disabled, .networkDown), (.timeout, .timedOut), (.refused, .permission),
    (.sessionExpired, .permission), (.server, .io), (.throttled, .io), (.damaged, .io),
    (.cancelled, .interrupted), (.unsupported, .notSupported),
  ])
  func whatWasNotSeenHasOneErrnoForEachCause(_ kind: StoreError.Kind, _ errno: Errno) throws {
    let file = try fixture.inode("b/seen/listed")
    let folder = try fixture.inode("b/unseen")
    fixture.store.outage = StoreError(kind, "no")
    #expect(
      fixture.errno { _ = try fixture.tree.open(file, flags: O_RDONLY, TreeFixture.slow) } == errno)
    #expect(
      fixture.errno { _ = try fixture.tree.openDirectory(folder, TreeFixture.slow) } == errno)
    #expect(
      fixture.errno { _ = try fixture.tree.lookup("x", in: folder, TreeFixture.slow) } == errno)
  }

  @Test(arguments: ["gone", "damaged"])
  func copiesAreReachedByTheirNamesAlsoWhenTheIndexWasLost(_ how: String) throws {
    let index = fixture.scratch.path("cache/cache.db")
    try fixture.remount {
      if how == "gone" {
        #expect(unlink(index) == 0)
      } else {
        let file = try File(index, O_WRONLY)
        let size = Int(try file.status().st_size) - 4096
        try [UInt8](repeating: 0x5A, count: size).withUnsafeBufferPointer {
          (bytes) throws(Errno) in
          try file.write(UnsafeRawBufferPointer(bytes), at: 4096)
        }
      }
    }
    fixture.store.outage = StoreError(.offline, "offline")
    #expect(try fixture.names("") == ["b"])
    #expect(try fixture.names("b") == ["seen"])
    #expect(try fixture.names("b/seen") == ["read"])
    #expect(try fixture.contents("b/seen/read") == [1, 2, 3])
    #expect(
      fixture.errno { _ = try fixture.find("b/seen/listed") } == .networkUnreachable,
      "there may be more than is kept")
    fixture.store.outage = nil
    #expect(try fixture.names("b/seen") == ["listed", "read"])
    #expect(try fixture.names("b") == ["seen", "unseen"])
    fixture.store.outage = StoreError(.offline, "offline")
    try fixture.remount()
    #expect(try fixture.names("b/seen") == ["listed", "read"], "a whole listing is kept again")
    #expect(try fixture.find("b/seen/none") == nil)
  }

  @Test func aFolderThatIsGoneIsNoEntry() throws {
    let folder = try fixture.inode("b/unseen")
    fixture.store.remove("b", "unseen/x")
    #expect(
      fixture.errno { _ = try fixture.tree.openDirectory(folder, TreeFixture.slow) } == .noEntry)
    #expect(try fixture.names("b") == ["seen"])
  }

  @Test func aCopyDoesNotShowAFileThatTheStoreDenies() throws {
    let seen = try fixture.inode("b/seen")
    #expect(fixture.cache.usage.files == 1)
    fixture.store.remove("b", "seen/read")
    fixture.store.remove("b", "seen/listed")
    fixture.tree.listings.distrust()
    #expect(
      fixture.errno { _ = try fixture.tree.lookup("read", in: seen, TreeFixture.slow) }
        == .noEntry)
  }

  @Test func aCopyIsFoundWhereNoListingIsKept() throws {
    fixture.tree.listings.clear()
    fixture.store.outage = StoreError(.offline, "offline")
    let fixture = self.fixture
    #expect(fixture.errno { _ = try fixture.names("b/seen") } == .networkUnreachable)
    fixture.store.outage = nil
    _ = try fixture.names("b")
    let seen = try fixture.inode("b/seen")
    fixture.store.outage = StoreError(.offline, "offline")
    fixture.tree.listings.clear()
    guard case .found(let entry) = try fixture.tree.lookup("read", in: seen, TreeFixture.slow)
    else {
      Issue.record("not found")
      return
    }
    #expect(entry.attributes.size == 3)
  }

  @Test func anInterruptEndsTheWait() throws {
    let call = Call()
    let caller = Caller(processID: 1, lane: .slow, call: call)
    let tree = fixture.tree
    let folder = try fixture.inode("b/unseen")
    let gate = Gate()
    fixture.store.inject(.wait(gate))
    let interrupter = try Platform.Thread(name: "interrupter") {
      gate.awaitArrivals(1)
      call.cancellation.cancel()
    }
    #expect(fixture.errno { _ = try tree.openDirectory(folder, caller) } == .interrupted)
    interrupter.join()
  }
}
