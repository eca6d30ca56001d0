import BucketStore
import Foundation
import Platform
import SQLite
import TestSupport
import Testing

@testable import FileCache

@Suite struct AdoptingTests {
  let fixture: CacheFixture

  init() throws {
    fixture = try CacheFixture()
  }

  private func goOffline() { fixture.store.outage = StoreError(.offline, "gone") }

  /// A file of this device that the store has by now, as after an upload.
  private func stored(_ key: ByteString, _ bytes: [UInt8]) throws -> (path: String, ObjectInfo) {
    let name = "pending/\(Timestamp.now.nanoseconds).data"
    try fixture.scratch.file(name, bytes)
    return (fixture.scratch.path(name), fixture.store.put("b", key, bytes))
  }

  private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  @Test func aStoredFileBecomesTheCopyByARename() throws {
    let cache = try fixture.cache()
    let (path, info) = try stored("album/new.jpg", [1, 2, 3])
    let inode = try File(path, O_RDONLY).status().st_ino
    let content = try #require(cache.adopt(path, size: 3, as: object("album/new.jpg"), info))
    #expect(!exists(path))
    let copy = try File(fixture.path("storage/b/album/new.jpg"), O_RDONLY)
    #expect(try copy.status().st_ino == inode)
    #expect(cache.usage.files == 1)
    #expect(cache.usage.bytes == 3)
    #expect(fixture.gets == 0)
    goOffline()
    let file = try cache.open(object("album/new.jpg"), Call())
    #expect(file.version == content)
    #expect(file.info.tag == info.tag)
    #expect(try file.readAll() == [1, 2, 3])
    file.close()
  }

  @Test func aStoredFileCountsAsJustConfirmed() throws {
    fixture.options.maxAge = .seconds(60)
    let cache = try fixture.cache()
    let (path, info) = try stored("k", [1, 2, 3])
    #expect(cache.adopt(path, size: 3, as: object("k"), info) != nil)
    #expect(try cache.contents(object("k")) == [1, 2, 3])
    #expect(fixture.store.requests.isEmpty)
  }

  @Test func theStoreConfirmsTheCopyByItsTag() throws {
    let cache = try fixture.cache()
    let (path, info) = try stored("k", [1, 2, 3])
    let inode = try File(path, O_RDONLY).status().st_ino
    #expect(cache.adopt(path, size: 3, as: object("k"), info) != nil)
    #expect(try cache.contents(object("k")) == [1, 2, 3])
    #expect(fixture.store.requests.map(\.route) == [.get])
    #expect(try File(fixture.path("storage/b/k"), O_RDONLY).status().st_ino == inode, "not fetched")
  }

  @Test func anOlderCopyGivesWayAndWhoHasItOpenKeepsIt() throws {
    fixture.store.put("b", "k", Array("the old bytes".utf8))
    let cache = try fixture.cache()
    let old = try cache.open(object("k"), Call())
    #expect(try old.readAll() == Array("the old bytes".utf8))
    let (path, info) = try stored("k", [9, 9])
    #expect(cache.adopt(path, size: 2, as: object("k"), info) != nil)
    goOffline()
    #expect(try cache.contents(object("k")) == [9, 9])
    #expect(try old.readAll() == Array("the old bytes".utf8))
    #expect(cache.usage.bytes == 2)
    old.close()
    #expect(files(below: fixture.path("storage")) == ["b/k"])
  }

  @Test func aDownloadOfAnOlderVersionDoesNotComeInItsPlace() throws {
    fixture.options.partSize = 65_536
    fixture.store.put("b", "k", Array(repeating: 7, count: 1_000_000))
    let cache = try fixture.cache()
    let old = try cache.open(object("k"), expected: 1_000_000, Call())
    #expect(try old.readBytes(10, at: 500_000).count == 10)
    let (path, info) = try stored("k", [9, 9])
    #expect(cache.adopt(path, size: 2, as: object("k"), info) != nil)
    old.close()
    goOffline()
    #expect(try cache.contents(object("k")) == [9, 9])
    #expect(cache.usage == CacheUsage(bytes: 2, limit: 256 << 20, files: 1))
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
  }

  @Test func theCopySurvivesARestartAndAKillBetweenItsTwoSteps() throws {
    let (path, info) = try stored("k", [1, 2, 3])
    #expect(try fixture.cache().adopt(path, size: 3, as: object("k"), info) != nil)
    goOffline()
    #expect(try fixture.reopen().contents(object("k")) == [1, 2, 3])
    fixture.close()
    // The rename was done, the row was not: as after a kill between the two.
    var connection = try Connection(fixture.path("cache.db"))
    try connection.execute("DELETE FROM objects")
    try Data().write(to: URL(fileURLWithPath: fixture.path("cache.db-wal")))
    let cache = try fixture.cache()
    #expect(eventually { cache.usage.files == 1 })
    #expect(try cache.contents(object("k")) == [1, 2, 3])
    #expect(cache.copy(of: object("k"))?.info.tag == info.tag)
  }

  @Test func aRowOfAnOlderVersionIsNotServedAfterAKillBetweenTheTwoSteps() throws {
    let (first, firstInfo) = try stored("k", [1, 1, 1])
    #expect(try fixture.cache().adopt(first, size: 3, as: object("k"), firstInfo) != nil)
    fixture.close()
    let index = try #require(fixture.contents("cache.db"))
    let (second, info) = try stored("k", [2, 2, 2])
    #expect(try fixture.cache().adopt(second, size: 3, as: object("k"), info) != nil)
    fixture.close()
    try Data(index).write(to: URL(fileURLWithPath: fixture.path("cache.db")))
    try Data().write(to: URL(fileURLWithPath: fixture.path("cache.db-wal")))
    goOffline()
    #expect(try fixture.cache().contents(object("k")) == [2, 2, 2])
  }

  @Test func aFileOnAnotherFileSystemIsCopied() throws {
    let cache = try fixture.cache()
    let folder = "/dev/shm/bucketfs-test-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let bytes = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31 / 7) }
    let path = folder + "/1.data"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    let info = fixture.store.put("b", "k", bytes)
    #expect(cache.adopt(path, size: 700_000, as: object("k"), info) != nil)
    goOffline()
    #expect(try cache.contents(object("k")) == bytes)
    #expect(exists(path), "whoever handed it over removes it")
    #expect(files(below: fixture.path("tmp")).isEmpty)
  }

  @Test func whatCannotBeTakenLeavesNoOlderCopyAndTheFileWhereItWas() throws {
    fixture.store.put("b", "k", Array("the old bytes".utf8))
    let cache = try fixture.cache()
    _ = try cache.ensure(object("k"), Call())
    let (path, info) = try stored("k", [1, 2, 3])
    #expect(cache.adopt(path, size: 4, as: object("k"), info) == nil, "its size is another")
    #expect(cache.adopt(path + "x", size: 3, as: object("k"), info) == nil, "it is not there")
    #expect(exists(path))
    #expect(cache.copy(of: object("k")) == nil)
    #expect(try cache.contents(object("k")) == [1, 2, 3], "fetched")
  }

  @Test func aPinStaysWithTheNewVersion() throws {
    let (first, firstInfo) = try stored("k", [1, 1, 1])
    let cache = try fixture.cache()
    #expect(cache.adopt(first, size: 3, as: object("k"), firstInfo) != nil)
    cache.state.withLock { $0.copies[object("k")]?.isPinned = true }
    let (second, info) = try stored("k", [2, 2, 2])
    #expect(cache.adopt(second, size: 3, as: object("k"), info) != nil)
    #expect(cache.copy(of: object("k"))?.isPinned == true)
    #expect(try fixture.reopen().copy(of: object("k"))?.isPinned == true)
  }

  @Test func theBoundHoldsForStoredFilesToo() throws {
    fixture.options.cacheSize = 1000
    fixture.options.grace = .zero
    let cache = try fixture.cache()
    for index in 0..<10 {
      let (path, info) = try stored(
        ByteString("k\(index)"), Array(repeating: UInt8(index), count: 300))
      #expect(cache.adopt(path, size: 300, as: object(ByteString("k\(index)")), info) != nil)
    }
    #expect(eventually { cache.usage.bytes <= 900 })
    #expect(cache.copy(of: object("k9")) != nil)
    #expect(cache.copy(of: object("k0")) == nil)
  }

  @Test func keysThatNoPathCanHoldAreTakenToo() throws {
    let cache = try fixture.cache()
    for key: ByteString in ["..", "a//b", ByteString([0xFF, 0x01])] {
      let (path, info) = try stored(key, Array("of \(key)".utf8))
      #expect(cache.adopt(path, size: info.size ?? 0, as: object(key), info) != nil)
    }
    goOffline()
    for key: ByteString in ["..", "a//b", ByteString([0xFF, 0x01])] {
      #expect(try cache.contents(object(key)) == Array("of \(key)".utf8))
    }
  }

  @Test func roomIsMadeByTheCopiesUsedLongestAgo() throws {
    for index in 0..<5 {
      fixture.store.put("b", ByteString("k\(index)"), Array(repeating: 0, count: 1000))
    }
    let cache = try fixture.cache()
    for index in 0..<5 { _ = try cache.ensure(object(ByteString("k\(index)")), Call()) }
    let open = try cache.open(object("k0"), Call())
    #expect(cache.makeRoom(1500) == 2000)
    #expect(files(below: fixture.path("storage")) == ["b/k0", "b/k3", "b/k4"])
    #expect(cache.makeRoom(1 << 40) == 2000)
    #expect(files(below: fixture.path("storage")) == ["b/k0"], "it is open")
    #expect(cache.makeRoom(1) == 0)
    open.close()
  }
}
