import BucketStore
import Foundation
import Platform
import SQLite
import TestSupport
import Testing

@testable import FileCache

@Suite struct IndexTests {
  let fixture: CacheFixture
  let keys: [ByteString] = ["a/one", "a/two", "..", "three"]

  init() throws {
    fixture = try CacheFixture()
    for key in keys { fixture.store.put("b", key, Array("bytes of \(key)".utf8)) }
  }

  private func fill() throws {
    let cache = try fixture.cache()
    for key in keys { _ = try cache.ensure(object(key), Call()) }
  }

  private func goOffline() { fixture.store.outage = StoreError(.offline, "gone") }

  /// Which of the keys are served, and whether each rightly.
  private func served(by cache: FileCache) -> [ByteString] {
    keys.filter { key in
      do throws(StoreError) {
        let bytes = try cache.contents(object(key))
        #expect(bytes == Array("bytes of \(key)".utf8))
        return true
      } catch {
        return false
      }
    }
  }

  private func edit(_ script: String) throws {
    var connection = try Connection(fixture.path("cache.db"))
    try connection.execute(script)
  }

  @Test func copiesAndTheirLastUseSurviveARestart() throws {
    try fill()
    let before = Dictionary(
      uniqueKeysWithValues: keys.map { ($0, try? fixture.cache().copy(of: object($0))) })
    let usage = try fixture.cache().usage
    let cache = try fixture.reopen()
    for key in keys { #expect(cache.copy(of: object(key)) == before[key]) }
    #expect(cache.usage == usage)
    let used = cache.state.withLock { $0.copies.mapValues(\.used) }
    goOffline()
    usleep(20_000)
    #expect(try cache.contents(object("three")).count == 14)
    let again = try fixture.reopen()
    let later = again.state.withLock { $0.copies.mapValues(\.used) }
    #expect(try #require(later[object("three")]) > #require(used[object("three")]))
    #expect(later[object("a/one")] == used[object("a/one")])
  }

  @Test func aNewerSchemaIsRefusedAndLeftAlone() throws {
    try fill()
    fixture.close()
    try edit("PRAGMA user_version = 99")
    let error = #expect(throws: CacheError.self) { _ = try fixture.cache() }
    #expect("\(try #require(error))".contains("newer"))
    #expect("\(try #require(error))".contains("99"))
    #expect(fixture.exists("storage/b/a/one"))
  }

  @Test(arguments: ["header", "pages", "emptied", "gone", "text"])
  func aDamagedIndexIsMadeAnewFromTheFiles(_ how: String) throws {
    try fill()
    fixture.close()
    let path = fixture.path("cache.db")
    let size = try #require(fixture.contents("cache.db")).count
    switch how {
    case "header": try patch(path, at: 0, count: 100)
    case "pages": try patch(path, at: 4096, count: size - 4096)
    case "emptied": #expect(truncate(path, 0) == 0)
    case "gone": try FileManager.default.removeItem(atPath: path)
    default: try Data("this is no database\n".utf8).write(to: URL(fileURLWithPath: path))
    }
    goOffline()
    let cache = try fixture.cache()
    #expect(eventually { served(by: cache) == keys })
    #expect(cache.usage.files == keys.count)
    #expect(eventually { served(by: cache) == keys })
    let again = try fixture.reopen()
    #expect(served(by: again) == keys)
  }

  @Test func whatPersonsHaveSetOutlivesADamagedIndex() throws {
    let folder = FolderName(bucket: "b", prefix: "a/")
    let kept = KeptAttributes(
      tag: "t", size: 3, modified: Timestamp(seconds: 5), mode: 0o755, extended: [:])
    AttributeTable(try fixture.cache().database).set(kept, of: "one", in: folder)
    fixture.close()
    try edit("DROP TABLE objects")
    let table = AttributeTable(try fixture.cache().database)
    #expect(table.attributes(of: "one", in: folder) == kept)
  }

  @Test func anIndexThatIsLostWhileItIsUsedIsMadeAnew() throws {
    try fill()
    let cache = try fixture.cache()
    for name in ["cache.db", "cache.db-wal", "cache.db-shm", "CACHEDIR.TAG", "lock"] {
      unlink(fixture.path(name))
    }
    cache.keepHouse()
    #expect(eventually { fixture.exists("cache.db") })
    #expect(fixture.exists("CACHEDIR.TAG"))
    #expect(fixture.contents("lock") == Array("\(getpid())\n/mnt/here\n".utf8))
    goOffline()
    #expect(served(by: cache) == keys)
    fixture.store.outage = nil
    fixture.store.put("b", "later", [1])
    _ = try cache.ensure(object("later"), Call())
    let again = try fixture.reopen()
    #expect(again.usage.files == keys.count + 1)
    goOffline()
    #expect(served(by: again) == keys)
  }

  @Test func aFolderThatWasReplacedIsNotTouchedAnyMore() throws {
    try fill()
    let cache = try fixture.cache()
    let folder = fixture.options.directory
    #expect(rename(folder, folder + ".moved") == 0)
    let other = try FileCache(options: fixture.options, store: fixture.store)
    defer { other.close() }
    _ = try other.ensure(object("three"), Call())
    cache.keepHouse()
    #expect(eventually { cache.database.isInMemory })
    goOffline()
    #expect(served(by: cache) == keys)
    #expect(other.usage.files == 1)
    #expect(try other.contents(object("three")).count == 14)
  }

  private func patch(_ path: String, at offset: Int, count: Int) throws {
    let file = try File(path, O_WRONLY)
    let garbage = [UInt8](repeating: 0xA5, count: count)
    try garbage.withUnsafeBufferPointer { (bytes) throws(Errno) in
      try file.write(UnsafeRawBufferPointer(bytes), at: Int64(offset))
    }
  }

  @Test func aFileThatCannotShowWhatItIsGoesWithTheIndex() throws {
    try fill()
    fixture.close()
    try FileManager.default.removeItem(atPath: fixture.path("cache.db"))
    // Other bytes under the old mark, a strange file, and a copy under another's name.
    usleep(10_000)
    try patch(fixture.path("storage/b/a/one"), at: 0, count: 5)
    try fixture.scratch.file("cache/storage/b/strange", [1, 2, 3])
    #expect(rename(fixture.path("storage/b/a/two"), fixture.path("storage/b/a/zwei")) == 0)
    goOffline()
    let cache = try fixture.cache()
    #expect(eventually { !fixture.exists("storage/b/strange") })
    #expect(eventually { !fixture.exists("storage/b/a/zwei") })
    #expect(eventually { served(by: cache) == ["..", "three"] })
  }

  @Test func aCopyWhoseRowTheCrashKeptBackIsTakenUp() throws {
    try fill()
    fixture.close()
    // The rename was done, the row was not: as after a kill between the two.
    try edit("DELETE FROM objects WHERE path = CAST('three' AS BLOB)")
    try Data().write(to: URL(fileURLWithPath: fixture.path("cache.db-wal")))
    goOffline()
    let cache = try fixture.cache()
    #expect(eventually { cache.usage.files == keys.count })
    #expect(served(by: cache) == keys)
  }

  @Test func aRowOfAnOlderVersionThanTheFileIsNeverServed() throws {
    try fill()
    fixture.close()
    let row = try #require(fixture.contents("cache.db"))
    let new = fixture.store.put("b", "three", Array("bytes of three".utf8.reversed()))
    let cache = try fixture.cache()
    #expect(try cache.contents(object("three")) == Array("bytes of three".utf8.reversed()))
    _ = try cache.ensure(object("three"), Call())
    #expect(eventually { cache.copy(of: object("three"))?.info.tag == new.tag })
    fixture.close()
    try Data(row).write(to: URL(fileURLWithPath: fixture.path("cache.db")))
    try Data().write(to: URL(fileURLWithPath: fixture.path("cache.db-wal")))
    goOffline()
    let torn = try fixture.cache()
    #expect(eventually { torn.copy(of: object("three"))?.info.tag == new.tag }, "taken up")
    #expect(try torn.contents(object("three")) == Array("bytes of three".utf8.reversed()))
  }

  @Test func aRowWithoutItsFileIsAMiss() throws {
    try fill()
    fixture.close()
    try FileManager.default.removeItem(atPath: fixture.path("storage/b/a/one"))
    let cache = try fixture.cache()
    #expect(cache.copy(of: object("a/one")) == nil)
    #expect(served(by: cache) == keys)
  }

  @Test func aHundredThousandCopiesAreNoBurden() throws {
    try fill()
    fixture.close()
    try edit(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
      INSERT INTO objects (bucket, path, local_path, size, written, inode, tag, fetched, confirmed,
        used, verified, durable)
      SELECT CAST('b' AS BLOB), CAST('folder/' || i AS BLOB),
        CAST('storage/b/folder/' || i AS BLOB), 100, i, i,
        '"0123456789abcdef0123456789abcdef"', i, i, i, 1, 1 FROM n
      """)
    let start = Instant.now
    let cache = try fixture.cache()
    #expect(cache.usage.files == 100_000 + keys.count)
    goOffline()
    #expect(served(by: cache) == keys)
    #expect(cache.copy(of: object("folder/77")) == nil, "its file is not there")
    #expect(Instant.now.since(start) < .seconds(60))
  }

  @Test(arguments: [false, true])
  func anotherIdentityFindsNothingOfTheFirst(_ isIndexLost: Bool) throws {
    try fill()
    fixture.close()
    if isIndexLost { #expect(unlink(fixture.path("cache.db")) == 0) }
    fixture.options.identity = "somebody else"
    goOffline()
    let cache = try fixture.cache()
    #expect(served(by: cache).isEmpty)
    #expect(cache.usage == CacheUsage(bytes: 0, limit: 256 << 20, files: 0))
    #expect(files(below: fixture.path("storage")).isEmpty)
    #expect(files(below: fixture.path("storage-hashed")).isEmpty)
  }

  @Test func whatAPowerCutMayHaveSpoiltIsNotBelieved() throws {
    try fill()
    fixture.store.put("b", "untagged", [1, 2, 3])
    fixture.store.describe("b", "untagged") { $0.tag = "\"no-md5\"" }
    _ = try fixture.cache().ensure(object("untagged"), Call())
    fixture.close()
    // As if the machine had gone down before the disk was synced: another boot, nothing durable,
    // one file of the right size and time with other bytes in it.
    try edit("UPDATE objects SET durable = 0; UPDATE facts SET value = 'x' WHERE name = 'boot'")
    try spoil(fixture.path("storage/b/three"))
    goOffline()
    let cache = try fixture.cache()
    #expect(served(by: cache) == ["a/one", "a/two", ".."], "compared with their checksums")
    #expect(eventually { !fixture.exists("storage/b/three") })
    #expect(try cache.contents(object("untagged")) == [1, 2, 3], "compared with our own")
  }

  @Test func whatIsDurableIsBelievedAfterAReboot() throws {
    try fill()
    fixture.close()
    try edit("UPDATE facts SET value = 'x' WHERE name = 'boot'")
    goOffline()
    #expect(served(by: try fixture.cache()) == keys, "closing in order makes them durable")
  }

  @Test func closingLeavesForLaterWhatItHasNoTimeToSync() throws {
    fixture.options.closingTime = .zero
    try fill()
    let cache = try fixture.reopen()
    let copies = cache.state.withLock { $0.copies }
    #expect(copies.count == keys.count)
    #expect(copies.values.allSatisfy { !$0.isDurable })
    #expect(cache.state.withLock { $0.fresh } == Set(keys.map { object($0) }))
    goOffline()
    #expect(served(by: cache) == keys)
  }

  /// Other bytes, with size and time as they were.
  private func spoil(_ path: String) throws {
    let file = try File(path, O_RDWR)
    let status = try file.status()
    try patch(path, at: 0, count: Int(status.st_size))
    var times = [status.st_mtim, status.st_mtim]
    #expect(futimens(file.descriptor, &times) == 0)
  }

  @Test func anIdentityComesBackFromItsMark() throws {
    let identity = CopyIdentity(
      owner: "somebody",
      object: ObjectName(bucket: "b:1,", key: ByteString([0x00, 0xFF, 0x2C])),
      facts: ObjectFacts(
        size: 5, tag: "\"x\"", version: "v", modified: Timestamp(seconds: 1),
        contentType: "image/jpeg"), fetched: Timestamp(seconds: 2), isVerified: true,
      sha256: "abc")
    #expect(CopyIdentity(encoded: identity.encoded) == identity)
    for count in 0..<identity.encoded.count {
      #expect(CopyIdentity(encoded: Array(identity.encoded.prefix(count))) == nil)
    }
    #expect(CopyIdentity(encoded: Array("9999999999999999999:".utf8)) == nil)
  }
}
