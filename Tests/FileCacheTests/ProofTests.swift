import BucketStore
import Foundation
import Platform
import SQLite
import TestSupport
import Testing

@testable import FileCache

@Suite struct ProofTests {
  let fixture: CacheFixture
  let name = object("k")
  let bytes: [UInt8]

  init() throws {
    fixture = try CacheFixture { $0.partSize = 65_536 }
    var random = SeededGenerator(seed: 5)
    bytes = random.bytes(50_000)
  }

  /// Keeps a copy, and loses the store.
  ///
  /// - Parameter tag: nil for the MD5 of the bytes.
  private func keep(tag: String?) throws -> FileCache {
    fixture.store.put("b", "k", bytes)
    if let tag { fixture.store.describe("b", "k") { $0.tag = tag } }
    let cache = try fixture.cache()
    _ = try cache.ensure(name, Call())
    fixture.store.outage = StoreError(.offline, "gone")
    return cache
  }

  private var path: String { fixture.path("storage/b/k") }

  /// Changes bytes of a file, and puts its time of modification back.
  private func edit(_ path: String, at offset: Int64) throws {
    let file = try File(path, O_RDWR)
    let status = try file.status()
    let other: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    try other.withUnsafeBufferPointer { (bytes) throws(Errno) in
      try file.write(UnsafeRawBufferPointer(bytes), at: offset)
    }
    var times = [status.st_atim, status.st_mtim]
    #expect(futimens(file.descriptor, &times) == 0)
  }

  @Test(arguments: [nil, "\"several-2\""], [false, true])
  func anEditIsNoticedWhateverTimeItHas(_ tag: String?, _ isRestarted: Bool) throws {
    var cache = try keep(tag: tag)
    if isRestarted { cache = try fixture.reopen() }
    try edit(path, at: 20_000)
    let error = #expect(throws: StoreError.self) { try cache.contents(name) }
    #expect(error?.kind == .offline)
    #expect(cache.copy(of: name) == nil)
    fixture.store.outage = nil
    #expect(try cache.contents(name) == bytes, "and fetched again")
  }

  @Test func anEditIsNoticedAlsoWhereTheStoreNeedNotBeAsked() throws {
    fixture.options.maxAge = .seconds(3600)
    let cache = try keep(tag: nil)
    try edit(path, at: 0)
    #expect(cache.openConfirmed(name) == nil)
    #expect(throws: StoreError.self) { try cache.contents(name) }
  }

  @Test(arguments: [nil, "\"several-2\""], ["mode", "time", "restored"])
  func aFileThatWasTouchedButNotChangedIsServedOn(_ tag: String?, _ how: String) throws {
    let cache = try keep(tag: tag)
    switch how {
    case "mode": #expect(chmod(path, 0o400) == 0)
    case "time": #expect(utimes(path, nil) == 0)
    default:
      // As a backup does that was played back; beside the cache, where nothing is swept away.
      let restored = fixture.path("../restored")
      try Data(bytes).write(to: URL(fileURLWithPath: restored))
      #expect(rename(restored, path) == 0)
    }
    #expect(try cache.contents(name) == bytes)
    let stamp = cache.state.withLock { $0.copies[name]?.stamp }
    #expect(try stamp == FileStamp(File(path, O_RDONLY).status()), "compared once")
    #expect(try fixture.reopen().contents(name) == bytes)
  }

  @Test func ofAnIndexThatKnewNoStampsEveryCopyIsComparedOnce() throws {
    _ = try keep(tag: nil)
    fixture.close()
    var connection = try Connection(fixture.path("cache.db"))
    try connection.execute("UPDATE objects SET changed = 0")
    #expect(try fixture.cache().contents(name) == bytes)
    let copies = try fixture.reopen().state.withLock { $0.copies }
    #expect(copies[name]?.stamp.changed != .epoch)
  }

  @Test(arguments: [false, true])
  func partsThatSomebodyChangedAreFetchedAgain(_ isRestarted: Bool) throws {
    var random = SeededGenerator(seed: 6)
    let large = random.bytes(1_000_000)
    fixture.store.put("b", "film", large)
    fixture.store.describe("b", "film") { $0.tag = "\"film-2\"" }
    let film = object("film")
    var cache = try fixture.cache()
    let file = try cache.open(film, expected: 1_000_000, Call())
    #expect(try file.readBytes(1000, at: 0) == Array(large[..<1000]))
    file.close()
    #expect(eventually { cache.state.withLock { $0.partials[film] } != nil })
    if isRestarted { cache = try fixture.reopen() }
    let part = try #require(files(below: fixture.path("tmp")).first)
    try edit(fixture.path("tmp/" + part), at: 100)
    let again = try cache.open(film, expected: 1_000_000, Call())
    #expect(try again.readBytes(1000, at: 0) == Array(large[..<1000]))
  }
}
