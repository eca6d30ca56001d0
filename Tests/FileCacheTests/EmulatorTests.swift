import BucketStore
import FileCache
import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

/// The cache over real HTTP: what the wire can do to a download.
@Suite struct EmulatorTests {
  let server: SupabaseFixture
  let scratch: Scratch

  init() throws {
    server = try SupabaseFixture()
    server.createBucket("b")
    scratch = try Scratch()
  }

  private func open(_ change: (inout CacheOptions) -> Void = { _ in }) throws -> FileCache {
    var options = CacheOptions(
      directory: scratch.path("cache"), mountPoint: "/mnt", identity: "somebody")
    options.maxAge = .zero
    options.partSize = 100_000
    change(&options)
    return try FileCache(options: options, store: server.store)
  }

  private func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return random.bytes(count)
  }

  /// Opens and reads; the time-out leaves room for a machine that is busy with other tests.
  private func read(_ cache: FileCache, _ key: ByteString) throws(StoreError) -> [UInt8] {
    try cache.contents(object(key), Call(timeout: .seconds(20)))
  }

  /// All copies, none of which may differ from the store's bytes.
  private func copies(_ cache: FileCache) -> [String: [UInt8]] {
    let root = scratch.path("cache/storage/b")
    return Dictionary(
      uniqueKeysWithValues: files(below: root).map { name in
        (name, Array(FileManager.default.contents(atPath: root + "/" + name) ?? Data()))
      })
  }

  @Test func aDownloadCutAtEveryTenthByteIsNeverWrong() throws {
    let small = bytes(1000)
    let cache = try open()
    defer { cache.close() }
    var whole = 0
    for cut in stride(from: 0, through: 1000, by: 10) {
      let key = "cut \(cut)"
      try server.put("b", key, small)
      server.emulator.setFault(
        Fault(
          method: "GET", route: "object", key: ByteString(key), times: 1, effect: .cut(after: cut)))
      do throws(StoreError) {
        #expect(try read(cache, ByteString(key)) == small, "cut at \(cut)")
        whole += 1
      } catch {
        #expect(cut == 0, "cut at \(cut): \(error)")
      }
    }
    #expect(whole >= 100)
    #expect(eventually { copies(cache).count == whole })
    for (name, kept) in copies(cache) { #expect(kept == small, "\(name)") }
  }

  @Test(arguments: Fault.Lie.allCases)
  func anAnswerThatLiesIsNeverServedNorKept(_ lie: Fault.Lie) throws {
    let cache = try open()
    defer { cache.close() }
    for (index, size) in [1000, 90_000, 350_000].enumerated() {
      let key = "object \(size)"
      let truth = bytes(size, seed: UInt64(index))
      try server.put("b", key, truth)
      for times in [1, -1] {
        server.emulator.setFault(
          Fault(
            method: "GET", route: "object", key: ByteString(key), times: times,
            effect: .lie(lie)))
        for _ in 0..<2 {
          do throws(StoreError) {
            #expect(try read(cache, ByteString(key)) == truth, "\(lie) \(size)")
          } catch {
            // An error is right too, as long as nothing wrong was served.
          }
        }
        server.emulator.clearFaults()
        #expect(try read(cache, ByteString(key)) == truth, "\(lie) \(size), well again")
        #expect(
          eventually { copies(cache)[key].map { $0 == truth } ?? true }, "\(lie) \(size) kept")
        cache.drop(object(ByteString(key)))
      }
    }
  }

  @Test func aTagThatChangesBetweenPartsIsNeverAMixture() throws {
    let old = bytes(1_000_000, seed: 1)
    let new = bytes(1_000_000, seed: 2)
    try server.put("b", "film", old)
    let cache = try open()
    defer { cache.close() }
    let file = try cache.open(object("film"), expected: 1_000_000, Call())
    #expect(try file.readBytes(1000, at: 0) == Array(old[..<1000]))
    try server.put("b", "film", new)
    let error = #expect(throws: StoreError.self) { try file.readBytes(1000, at: 900_000) }
    #expect(error?.kind == .damaged)
    #expect(try read(cache, "film") == new)
    #expect(eventually { copies(cache) == ["film": new] })
  }

  @Test func anOverwriteDuringAResumeIsNeverAMixture() throws {
    let old = bytes(80_000, seed: 1)
    let new = bytes(80_000, seed: 2)
    let cache = try open()
    defer { cache.close() }
    try server.put("b", "k", old)
    server.emulator.setFault(
      Fault(method: "GET", route: "object", key: "k", times: 1, effect: .stall(after: 40_000)))
    let file = try cache.open(object("k"), Call(timeout: .seconds(1)))
    try server.put("b", "k", new)
    let error = #expect(throws: StoreError.self) {
      try file.readAll(Call(timeout: .seconds(3)))
    }
    #expect(error?.kind == .damaged)
    #expect(try read(cache, "k") == new)
    #expect(eventually { copies(cache) == ["k": new] })
  }

  @Test func aPartOfALargeObjectIsAllThatIsSent() throws {
    let film = bytes(5_000_000)
    try server.put("b", "film", film)
    let cache = try open()
    defer { cache.close() }
    let file = try cache.open(object("film"), expected: 5_000_000, Call())
    #expect(try file.readBytes(1000, at: 4_999_000) == Array(film[4_999_000...]))
    file.close()
    let sent = server.emulator.requests.entries().reduce(0) { $0 + $1.bytesOut }
    #expect(sent < 600_000)
  }

  @Test func anUnchangedCopyCostsNoBytes() throws {
    try server.put("b", "k", bytes(90_000))
    let cache = try open()
    defer { cache.close() }
    _ = try cache.ensure(object("k"), Call())
    server.emulator.requests.clear()
    #expect(try read(cache, "k").count == 90_000)
    let entries = server.emulator.requests.entries()
    #expect(entries.map(\.status) == [304])
    #expect(entries.reduce(0) { $0 + $1.bytesOut } < 1000)
  }

  @Test func everyObjectIsServedFromItsCopyOnceTheServerIsGone() throws {
    let cache = try open()
    defer { cache.close() }
    for index in 0..<20 {
      try server.put("b", "a/\(index)", bytes(10_000 * index, seed: UInt64(index)))
      _ = try cache.ensure(object(ByteString("a/\(index)")), Call())
    }
    server.emulator.stop()
    for index in 0..<20 {
      let kept = try read(cache, ByteString("a/\(index)"))
      #expect(kept == bytes(10_000 * index, seed: UInt64(index)))
    }
    let error = #expect(throws: StoreError.self) { try read(cache, "new") }
    #expect(error?.kind == .connectivity)
  }
}
