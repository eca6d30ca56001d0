import BucketStore
import FileCache
import FileSystem
import Foundation
import Platform
import TestSupport
import Testing

/// The tree over a plain directory.
@Suite struct TreeTests {
  private let fixture: DirectoryFixture
  private let tree: FileSystem
  private let slow = Caller(processID: 1, lane: .slow, call: Call())

  init() throws {
    fixture = try DirectoryFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "a.jpg", [1, 2, 3])
    try fixture.put("photos", "2024/b.jpg", [4, 5])
    tree = FileSystem(
      listings: Listings(
        store: fixture.store, options: ListingOptions(maxAge: .seconds(60))),
      store: fixture.store, options: FileSystemOptions(uid: 7, gid: 8))
  }

  private func find(_ path: String) throws -> Entry {
    var inode: UInt64 = 1
    var entry: Entry?
    for name in path.split(separator: "/") {
      guard case .found(let found) = try tree.lookup(ByteString(String(name)), in: inode, slow)
      else { throw Errno.noEntry }
      entry = found
      inode = found.inode
    }
    return try #require(entry)
  }

  @Test func aNameLeadsToItsAttributes() throws {
    let file = try find("photos/a.jpg").attributes
    #expect(file.size == 3)
    #expect(file.mode == 0o100444)
    #expect(file.uid == 7 && file.gid == 8)
    let folder = try find("photos/2024").attributes
    #expect(folder.isDirectory && folder.mode == 0o040555)
  }

  @Test func aFolderListsItselfItsParentAndItsEntries() throws {
    let photos = try find("photos").inode
    let handle = try tree.openDirectory(photos, slow)
    #expect((0..<handle.count).map { handle[$0].name } == [".", "..", "2024", "a.jpg"])
    #expect(handle[0].attributes.inode == photos)
    #expect(handle[1].attributes.inode == 1)
    let a = try find("photos/a.jpg")
    #expect(handle[3].attributes == a.attributes)
  }

  @Test func theFastLaneRefusesToWait() throws {
    let fast = Caller(processID: 1, lane: .fast, call: Call())
    #expect(throws: Failure.mustWait) { try tree.lookup("photos", in: 1, fast) }
    _ = try find("photos")
    guard case .found(let known) = try tree.lookup("photos", in: 1, fast) else {
      Issue.record("not known on the fast lane")
      return
    }
    #expect(try known.inode == find("photos").inode)
  }

  @Test func anOpenFileIsRead() throws {
    let file = try find("photos/2024/b.jpg").inode
    let handle = try tree.open(file, flags: O_RDONLY, slow)
    var bytes = [UInt8](repeating: 0, count: 10)
    let count = try bytes.withUnsafeMutableBytes {
      try tree.read(handle, into: $0, at: 0, slow)
    }
    #expect(Array(bytes.prefix(count)) == [4, 5])
    #expect(throws: Failure.self) { try tree.open(file, flags: O_RDWR, slow) }
  }

  @Test func forgottenInodesGoAndComeBackUnderTheSameNumber() throws {
    let first = try find("photos/a.jpg").inode
    let photos = try find("photos").inode
    let before = tree.nodeCount
    tree.forget(first, count: 1)
    #expect(tree.nodeCount == before - 1)
    guard case .found(let again) = try tree.lookup("a.jpg", in: photos, slow) else {
      Issue.record("gone")
      return
    }
    #expect(again.inode == first)
  }
}
