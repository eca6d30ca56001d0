import BucketStore
import FileSystem
import Glibc
import Platform
import TestSupport
import Testing

/// Open files, and what the kernel is told of their versions.
@Suite struct FileTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture()
    fixture.store.createBucket("b")
    fixture.store.put("b", "f", Array("first".utf8))
  }

  private func text(_ handle: FileHandle) throws -> String {
    String(decoding: try fixture.read(handle), as: UTF8.self)
  }

  @Test func listingFiveHundredObjectsDownloadsNone() throws {
    for file in 0..<500 { fixture.store.put("b", ByteString("x\(file)"), [1]) }
    try fixture.walk()
    #expect(!fixture.store.requests.contains { $0.route == .get || $0.route == .info })
  }

  @Test func onlyReadingIsAllowed() throws {
    let file = try fixture.inode("b/f")
    for flags in [O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC] {
      #expect(
        fixture.errno { _ = try fixture.tree.open(file, flags: flags, TreeFixture.slow) }
          == .readOnly)
    }
    let folder = try fixture.inode("b")
    #expect(
      fixture.errno { _ = try fixture.tree.open(folder, flags: O_RDONLY, TreeFixture.slow) }
        == .isDirectory)
  }

  @Test func readingAroundTheEndGivesWhatIsThere() throws {
    let handle = try fixture.open("b/f")
    defer { handle.close() }
    var buffer = [UInt8](repeating: 0, count: 10)
    func read(_ offset: Int64) throws -> Int {
      try buffer.withUnsafeMutableBytes {
        try fixture.tree.read(handle, into: $0, at: offset, TreeFixture.slow)
      }
    }
    #expect(try read(0) == 5)
    #expect(try read(3) == 2)
    #expect(try read(5) == 0)
    #expect(try read(.max) == 0)
    #expect(fixture.errno { _ = try read(-1) } == .invalid)
  }

  @Test func theKernelsPagesAreKeptWhileTheVersionIsTheSame() throws {
    let first = try fixture.open("b/f")
    #expect(!first.keepsCache)
    _ = try text(first)
    first.close()
    let second = try fixture.open("b/f")
    #expect(second.keepsCache)
    second.close()
    fixture.store.put("b", "f", Array("other".utf8))
    fixture.tree.listings.clear()
    let third = try fixture.open("b/f")
    #expect(!third.keepsCache)
    #expect(try text(third) == "other")
    third.close()
  }

  @Test func aVersionThatWasNotListedIsToldBeforeItIsRead() throws {
    let inode = try fixture.inode("b/f")
    fixture.store.put("b", "f", Array("second version".utf8))
    #expect(
      fixture.errno { _ = try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.slow) }
        == Errno(ESTALE))
    let entry = try #require(try fixture.find("b/f"))
    #expect(entry.inode == inode && entry.attributes.size == 14)
    #expect(fixture.kernel.inodes == [inode])
    let handle = try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.fast)
    #expect(try text(handle) == "second version")
    #expect(fixture.store.requests.filter { $0.route == .get }.count == 1)
    handle.close()
  }

  @Test func anOpenFileKeepsItsVersionAndItsInode() throws {
    let old = try fixture.open("b/f")
    #expect(try text(old) == "first")
    fixture.store.put("b", "f", Array("second version".utf8))
    fixture.tree.listings.distrust()
    let new = try fixture.open("b/f")
    #expect(new.inode != old.inode)
    #expect(try text(new) == "second version")
    #expect(try text(old) == "first")
    let sizes = try [old, new].map {
      try fixture.tree.attributes(of: $0.inode, TreeFixture.slow).attributes.size
    }
    #expect(sizes == [5, 14])
    #expect(fixture.kernel.names == ["f"])
    fixture.store.put("b", "f", Array("third".utf8))
    fixture.tree.listings.distrust()
    let newest = try fixture.open("b/f")
    #expect(Set([old.inode, new.inode, newest.inode]).count == 3)
    #expect(try text(newest) == "third")
    #expect(try text(new) == "second version")
    for handle in [old, new, newest] { handle.close() }
  }

  @Test func aFileThatChangesAllTheTimeIsOpenedWithItsOwnSize() throws {
    let inode = try fixture.inode("b/f")
    fixture.store.put("b", "f", Array("two".utf8))
    let open = { try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.slow) }
    #expect(fixture.errno { _ = try open() } == Errno(ESTALE))
    // The kernel does not look the name up again here, as a process with an open path would.
    let handle = try open()
    #expect(!handle.keepsCache)
    #expect(fixture.kernel.renewed == [inode])
    #expect(try fixture.tree.attributes(of: inode, TreeFixture.slow).attributes.size == 3)
    #expect(try text(handle) == "two")
    handle.close()
  }

  @Test func anOpenFileOutlivesItsObject() throws {
    let handle = try fixture.open("b/f")
    fixture.store.remove("b", "f")
    fixture.tree.listings.clear()
    #expect(try fixture.find("b/f") == nil)
    #expect(try text(handle) == "first")
    let entry = try fixture.tree.attributes(of: handle.inode, TreeFixture.slow)
    #expect(entry.attributes.size == 5)
    let inode = handle.inode
    handle.close()
    #expect(
      fixture.errno { _ = try fixture.tree.attributes(of: inode, TreeFixture.slow) } == .noEntry)
  }

  @Test func anObjectThatIsGoneTakesItsNameAlong() throws {
    let inode = try fixture.inode("b/f")
    fixture.store.put("b", "g", [1])
    fixture.store.remove("b", "f")
    #expect(
      fixture.errno { _ = try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.slow) }
        == .noEntry)
    #expect(try fixture.find("b/f", TreeFixture.fast) == nil)
    #expect(fixture.kernel.names == ["f"])
  }

  @Test func whatIsNotFoundWithoutASessionKeepsItsName() throws {
    let inode = try fixture.inode("b/f")
    fixture.store.session = .restoring
    fixture.store.remove("b", "f")
    #expect(
      fixture.errno { _ = try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.slow) }
        == .permission)
    #expect(try fixture.find("b/f") != nil)
  }

  @Test func aBurstOfOpensIsConfirmedByOneListing() throws {
    let fixture = try TreeFixture(maxAge: .milliseconds(700))
    fixture.store.createBucket("b")
    let names = (0..<30).map { ByteString("f\($0)") }
    for name in names { fixture.store.put("b", name, Array(name.bytes)) }
    let inodes = try names.map { try fixture.inode("b/" + $0) }
    for name in names { #expect(try fixture.contents("b/" + name) == name.bytes) }
    usleep(800_000)
    fixture.store.forgetRequests()
    // The kernel still believes the names, and only opens.
    for inode in inodes {
      try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.slow).close()
    }
    #expect(fixture.store.requests.filter { $0.route == .get }.count <= 2)
    #expect(fixture.listings <= 2)
  }

  @Test func aSizeThatIsNotListedIsAskedFor() throws {
    fixture.store.describe("b", "f") { $0.size = nil }
    #expect(try fixture.find("b/f")?.attributes.size == 0)
    fixture.tree.listings.clear()
    let store = fixture.store
    fixture.store.inject(.wait(openGate { store.describe("b", "f") { $0.size = 5 } }), on: .info)
    #expect(try fixture.find("b/f")?.attributes.size == 5)
    #expect(try fixture.find("b/f", TreeFixture.fast)?.attributes.size == 5)
  }

  private func openGate(_ body: () -> Void) -> Gate {
    body()
    let gate = Gate()
    gate.open()
    return gate
  }

  @Test func attributesTellTheStateOfAFile() throws {
    fixture.store.put("b", "p.jpg", [1, 2], contentType: "image/jpeg")
    let inode = try fixture.inode("b/p.jpg")
    func value(_ name: ByteString) throws(Failure) -> String {
      let full: ByteString = "user.bucketfs." + name
      return String(
        decoding: try fixture.tree.extendedAttribute(full, of: inode, TreeFixture.brief),
        as: UTF8.self)
    }
    #expect(try value("state") == "remote")
    #expect(fixture.errno { _ = try value("fetched_at") } == .noAttribute)
    _ = try fixture.contents("b/p.jpg")
    // The copy is put in place behind the reader's back.
    for _ in 0..<500 where fixture.cache.usage.files == 0 { usleep(10_000) }
    #expect(try value("state") == "cached")
    #expect(try value("content_type") == "image/jpeg")
    #expect(try value("key") == "p.jpg")
    #expect(try value("etag").count == 34)
    #expect(try value("fetched_at").hasSuffix("Z"))
    // Whoever copies what is listed would set it on other files.
    #expect(try fixture.tree.extendedAttributeNames(of: inode, TreeFixture.brief) == [])
    #expect(
      fixture.errno {
        _ = try fixture.tree.extendedAttribute("security.capability", of: inode, TreeFixture.fast)
      } == .noAttribute)
  }
}
