import BucketStore
import FileCache
import FileSystem
import Foundation
import Platform
import TestSupport
import Testing

/// Names, attributes, folders.
@Suite struct TreeTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture()
    fixture.store.createBucket("photos")
    fixture.store.put("photos", "a.jpg", [1, 2, 3])
    fixture.store.put("photos", "2024/b.jpg", [4, 5])
  }

  @Test func aNameLeadsToItsAttributes() throws {
    let file = try #require(try fixture.find("photos/a.jpg")).attributes
    #expect(file.size == 3)
    #expect(file.mode == 0o100444)
    #expect(file.uid == 7 && file.gid == 8)
    #expect(file.blocks == 1)
    let folder = try #require(try fixture.find("photos/2024")).attributes
    #expect(folder.isDirectory && folder.mode == 0o040555 && folder.links == 1)
  }

  @Test func aFolderListsItselfItsParentAndItsEntries() throws {
    let photos = try fixture.inode("photos")
    let handle = try fixture.tree.openDirectory(photos, TreeFixture.slow)
    #expect((0..<handle.count).map { handle[$0].name } == [".", "..", "2024", "a.jpg"])
    #expect(handle[0].attributes.inode == photos)
    #expect(handle[1].attributes.inode == 1)
    let a = try #require(try fixture.find("photos/a.jpg"))
    #expect(handle[3].attributes == a.attributes)
    #expect(fixture.tree.reference(0, of: handle) == nil)
    #expect(fixture.tree.reference(3, of: handle)?.attributes == a.attributes)
  }

  @Test func anOpenFolderKeepsItsEntries() throws {
    let handle = try fixture.tree.openDirectory(fixture.inode("photos"), TreeFixture.slow)
    fixture.store.remove("photos", "a.jpg")
    fixture.tree.listings.clear()
    #expect(try fixture.names("photos") == ["2024"])
    #expect((2..<handle.count).map { handle[$0].name } == ["2024", "a.jpg"])
  }

  /// The kernel believes what readdirplus says as it does a lookup.
  @Test func anOpenFolderGivesTheKernelWhatIsThereNow() throws {
    let handle = try fixture.tree.openDirectory(fixture.inode("photos"), TreeFixture.slow)
    fixture.store.remove("photos", "a.jpg")
    fixture.tree.listings.distrust()
    #expect(try fixture.names("photos") == ["2024"])
    #expect(handle[3].name == "a.jpg")
    #expect(fixture.tree.reference(3, of: handle) == nil)
    fixture.store.put("photos", "a.jpg", [1, 2, 3, 4, 5, 6])
    fixture.tree.listings.distrust()
    #expect(try fixture.names("photos") == ["2024", "a.jpg"])
    #expect(fixture.tree.reference(3, of: handle)?.attributes.size == 6)
    #expect(fixture.tree.reference(2, of: handle)?.attributes.isDirectory ?? false)
  }

  @Test func theFastLaneRefusesToWait() throws {
    #expect(throws: Failure.takesTime) {
      try fixture.tree.lookup("photos", in: 1, TreeFixture.fast)
    }
    let slow = try fixture.inode("photos/a.jpg")
    let fast = try #require(try fixture.find("photos/a.jpg", TreeFixture.fast))
    #expect(fast.inode == slow)
    #expect(throws: Failure.takesTime) {
      try fixture.tree.open(slow, flags: O_RDONLY, TreeFixture.fast)
    }
    let photos = try fixture.inode("photos")
    #expect(try fixture.tree.openDirectory(photos, TreeFixture.fast).count == 4)
  }

  @Test func forgottenInodesGoAndComeBackUnderTheSameNumber() throws {
    let first = try fixture.inode("photos/a.jpg")
    let before = fixture.tree.nodeCount
    fixture.tree.forget(first, count: 1)
    #expect(fixture.tree.nodeCount == before - 1)
    try fixture.remount()
    #expect(try fixture.inode("photos/a.jpg") == first)
  }

  @Test func missingNamesAreMissingForAsLongAsTheListingIsFresh() throws {
    let photos = try fixture.inode("photos")
    let lookup = try fixture.tree.lookup("none", in: photos, TreeFixture.slow)
    guard case .missing(let timeout) = lookup else {
      Issue.record("found")
      return
    }
    #expect(timeout > .seconds(30) && timeout <= .seconds(60))
  }

  @Test func namesThatCannotBeAreMissingOrTooLong() throws {
    let photos = try fixture.inode("photos")
    for name: ByteString in ["..", ".", "a\\b", "a\nb"] {
      guard case .missing = try fixture.tree.lookup(name, in: photos, TreeFixture.slow) else {
        Issue.record("\(name) was found")
        return
      }
    }
    let long = ByteString([UInt8](repeating: 97, count: 256))
    #expect(
      fixture.errno { _ = try fixture.tree.lookup(long, in: photos, TreeFixture.slow) }
        == .nameTooLong)
    let file = try fixture.inode("photos/a.jpg")
    #expect(
      fixture.errno { _ = try fixture.tree.lookup("x", in: file, TreeFixture.slow) }
        == .notDirectory)
    #expect(
      fixture.errno { _ = try fixture.tree.openDirectory(file, TreeFixture.slow) }
        == .notDirectory)
  }

  @Test func pathsNameObjectsWithoutAsking() throws {
    fixture.store.forgetRequests()
    #expect(try fixture.tree.object(at: "/photos/x/y.jpg").key == "x/y.jpg")
    let refused: [(ByteString, Errno)] = [
      ("photos/../x", .invalid), ("photos//x", .invalid), ("photos/./x", .invalid),
      ("photos/a\\b", .invalid), ("photos/a\u{1}", .invalid), ("photos", .isDirectory),
      ("", .isDirectory), ("/", .isDirectory), ("photos/x/", .invalid),
    ]
    for (path, errno) in refused {
      #expect(
        fixture.errno { _ = try fixture.tree.object(at: path) } == errno, "\(path)")
    }
    #expect(fixture.store.requests.isEmpty)
  }

  @Test func aNameThatNoKeyCanHoldIsAnIllegalSequence() throws {
    let strict = try TreeFixture { $0.names = KeyNames(.strict) }
    #expect(
      strict.errno { _ = try strict.tree.object(at: "photos/grün.jpg") } == .illegalSequence)
    #expect(try strict.tree.object(at: "photos/green.jpg").key == "green.jpg")
    let encoded = try TreeFixture { $0.names = KeyNames(.encode) }
    #expect(try encoded.tree.object(at: "photos/grün.jpg").key == "gr=C3=BCn.jpg")
  }

  @Test func theRootMayBeOneBucketOrAFolderInIt() throws {
    let inner = try TreeFixture {
      $0.root = .init(bucket: "photos", prefix: "2024/")
    }
    inner.store.put("photos", "2024/b.jpg", [4, 5])
    #expect(try inner.names("") == ["b.jpg"])
    #expect(try inner.contents("b.jpg") == [4, 5])
    #expect(try inner.tree.object(at: "c/d").key == "2024/c/d")
  }

  @Test func theRootIsThereThoughItHoldsNothing() throws {
    let inner = try TreeFixture {
      $0.root = .init(bucket: "photos", prefix: "2025/")
    }
    inner.store.createBucket("photos")
    inner.store.put("photos", "2024/b.jpg", [4, 5])
    #expect(try inner.names("") == [])
    #expect(try inner.find("c") == nil)
  }

  @Test func statisticsNeverAsk() throws {
    fixture.store.outage = StoreError(.offline, "offline")
    fixture.store.forgetRequests()
    let statistics = fixture.tree.statistics(TreeFixture.fast)
    #expect(statistics.freeBlocks > 0 && statistics.blocks >= statistics.freeBlocks)
    #expect(fixture.store.requests.isEmpty)
  }
}
