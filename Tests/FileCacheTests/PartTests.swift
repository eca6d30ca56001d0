import BucketStore
@testable import FileCache
import Foundation
import Platform
import TestSupport
import Testing

@Suite struct PartTests {
  let fixture: CacheFixture
  let name = object("film")
  let version: Version

  init() throws {
    fixture = try CacheFixture(scripted: true) { $0.partSize = 65_536 }
    var random = SeededGenerator(seed: 3)
    version = Version(random.bytes(2_000_000), tag: "\"film-2\"")
    fixture.script.play(version.answer())
  }

  private func slice(_ start: Int, _ count: Int) -> [UInt8] {
    Array(version.bytes[start..<min(version.bytes.count, start + count)])
  }

  /// Bytes that were asked for by range.
  private var asked: Int64 {
    fixture.script.requests.reduce(0) { sum, request in
      sum + (request.range.map { $0.upperBound - $0.lowerBound } ?? 0)
    }
  }

  @Test func readingAPartOfALargeObjectFetchesThatPart() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    #expect(file.size == 2_000_000)
    #expect(try file.readBytes(100, at: 1_999_900) == slice(1_999_900, 100))
    #expect(try file.readBytes(4096, at: 1_000_000) == slice(1_000_000, 4096))
    #expect(asked <= 4 * 65_536)
    #expect(fixture.script.requests.first?.range == 0..<65_536)
    #expect(cache.copy(of: name) == nil)
  }

  @Test func withoutKnowingTheSizeTheFirstAnswerIsCutShort() throws {
    let sent = Locked<Int64>(0)
    fixture.script.play(version.answer { position in sent.withLock { $0 = max($0, position) } })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    #expect(try file.readBytes(100, at: 0) == slice(0, 100))
    usleep(50_000)
    #expect(sent.withLock { $0 } < 300_000)
  }

  @Test(arguments: [nil, 2_000_000, 900_000_000] as [Int64?])
  func readingToTheEndMakesACopy(_ expected: Int64?) throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: expected, Call())
    #expect(try file.readAll() == version.bytes)
    #expect(eventually { cache.copy(of: name) != nil })
    #expect(fixture.contents("storage/b/film") == version.bytes)
    #expect(fixture.script.requests.count < 20, "read-ahead grows")
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
  }

  @Test func aCopyGrowsOutOfPartsReadInAnyOrder() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    var random = SeededGenerator(seed: 9)
    var starts = Array(stride(from: 0, to: 2_000_000, by: 50_000))
    starts.shuffle(using: &random)
    for start in starts {
      #expect(try file.readBytes(50_000, at: Int64(start)) == slice(start, 50_000))
    }
    #expect(eventually { cache.copy(of: name) != nil })
    #expect(fixture.contents("storage/b/film") == version.bytes)
  }

  @Test func aStoreThatIgnoresRangesIsReadRightAllTheSame() throws {
    var version = version
    version.honoursRange = false
    fixture.script.play(version.answer())
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    #expect(try file.readBytes(1000, at: 1_500_000) == slice(1_500_000, 1000))
    #expect(try file.readAll() == version.bytes)
  }

  @Test func aSizeThatIsNoLongerTrueCostsOneMoreRequest() throws {
    let small = Version([1, 2, 3])
    fixture.script.play(failure(.server), small.answer())
    let cache = try fixture.cache()
    #expect(try cache.open(name, expected: 2_000_000, Call()).readAll() == [1, 2, 3])
    #expect(fixture.script.requests.map(\.range) == [0..<65_536, nil])
  }

  @Test func partsAreKeptWhenTheFileIsClosedAndServeOffline() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    _ = try file.readBytes(1000, at: 1_000_000)
    file.close()
    #expect(eventually { cache.usage.bytes > 0 })
    #expect(cache.usage.bytes < 500_000)
    fixture.script.play(failure(.offline))
    let again = try cache.open(name, Call())
    #expect(try again.readBytes(1000, at: 1_000_000) == slice(1_000_000, 1000))
    let error = #expect(throws: StoreError.self) { try again.readBytes(1000, at: 1_800_000) }
    #expect(error?.kind == .offline)
  }

  @Test func partsSurviveARestart() throws {
    var cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    _ = try file.readBytes(1000, at: 1_000_000)
    file.close()
    #expect(eventually { cache.usage.bytes > 0 })
    let before = cache.usage
    cache = try fixture.reopen()
    #expect(cache.usage == before)
    fixture.script.play(version.answer())
    let again = try cache.open(name, expected: 2_000_000, Call())
    #expect(try again.readBytes(1000, at: 1_000_000) == slice(1_000_000, 1000))
    #expect(fixture.script.requests.map(\.unlessTag) == [version.tag])
    #expect(try again.readAll() == version.bytes)
    #expect(
      fixture.contents("storage/b/film") == version.bytes
        || eventually { cache.copy(of: name) != nil })
  }

  @Test func partsAreDurableOnceTheCacheWasClosed() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    _ = try file.readBytes(1000, at: 1_000_000)
    file.close()
    let again = try fixture.reopen()
    #expect(again.state.withLock { $0.partials[name]?.isDurable } == true)
  }

  @Test func partsWhoseFileCannotBeOpenedJustNowAreNotForgotten() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    _ = try file.readBytes(1000, at: 1_000_000)
    file.close()
    #expect(eventually { cache.usage.bytes > 0 })
    let before = cache.usage
    let path = try fixture.path(
      "tmp/" + #require(files(below: fixture.path("tmp")).first { $0.hasSuffix(".part") }))
    let folder = fixture.path("tmp")
    try FileManager.default.moveItem(atPath: folder, toPath: folder + ".aside")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    // A special file without a driver cannot be opened: ENXIO, which says nothing of the parts.
    try #require(mknod(path, S_IFSOCK | 0o600, 0) == 0)
    fixture.script.play(failure(.offline))
    #expect(throws: StoreError.self) { try cache.open(name, Call()) }
    #expect(cache.usage == before)
    try FileManager.default.removeItem(atPath: folder)
    try FileManager.default.moveItem(atPath: folder + ".aside", toPath: folder)
    let again = try cache.open(name, Call())
    #expect(try again.readBytes(1000, at: 1_000_000) == slice(1_000_000, 1000))
  }

  @Test func partsStayThoughLaterAnswersWereCutBeforeTheirFirstByte() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    _ = try file.readBytes(1000, at: 1_000_000)
    fixture.script.play(cutAtOnce(version), cutAtOnce(version), version.answer())
    #expect(try file.readBytes(1000, at: 1_800_000) == slice(1_800_000, 1000))
    file.close()
    #expect(eventually { cache.usage.bytes > 0 })
    fixture.script.play(failure(.offline))
    let again = try cache.open(name, Call())
    #expect(try again.readBytes(1000, at: 1_000_000) == slice(1_000_000, 1000))
  }

  @Test func partsThatAreOpenWhenTheProgramEndsSurviveToo() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    _ = try file.readBytes(1000, at: 1_000_000)
    let cacheAgain = try fixture.reopen()
    fixture.script.play(failure(.offline))
    let again = try cacheAgain.open(name, Call())
    #expect(try again.readBytes(1000, at: 1_000_000) == slice(1_000_000, 1000))
    file.close()
  }

  @Test func partsOfAnOlderVersionAreDropped() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    _ = try file.readBytes(1000, at: 1_000_000)
    file.close()
    #expect(eventually { cache.usage.bytes > 0 })
    let new = Version(Array(version.bytes.reversed()), tag: "\"film-3\"")
    fixture.script.play(new.answer())
    #expect(try cache.open(name, expected: 2_000_000, Call()).readAll() == new.bytes)
    #expect(eventually { fixture.contents("storage/b/film") == new.bytes })
    #expect(cache.usage.bytes == 2_000_000)
  }

  @Test func aNewVersionWhileAPartIsReadIsAnErrorAndNotAMixture() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    #expect(try file.readBytes(1000, at: 0) == slice(0, 1000))
    let new = Version(Array(version.bytes.reversed()), tag: "\"film-3\"")
    fixture.script.play(new.answer())
    let error = #expect(throws: StoreError.self) { try file.readBytes(1000, at: 1_000_000) }
    #expect(error?.kind == .damaged)
    #expect(
      try cache.open(name, Call()).readBytes(1000, at: 1_000_000)
        == Array(new.bytes[1_000_000..<1_001_000]))
  }

  @Test func aLargeObjectIsCheckedOnceItIsWhole() throws {
    let good = Version(version.bytes)
    var bad = good
    bad.bytes[1_234_567] ^= 1
    fixture.script.play(bad.answer())
    let cache = try fixture.cache()
    let error = #expect(throws: StoreError.self) {
      try cache.open(name, expected: 2_000_000, Call()).readAll()
    }
    #expect(error?.kind == .damaged)
    #expect(files(below: fixture.path("storage")).isEmpty)
    fixture.script.play(good.answer())
    #expect(try cache.contents(name) == good.bytes)
  }

  @Test func whoOpensItAsTheLastReaderLeavesIsNotToldThatItEnded() throws {
    fixture.options.maxAge = .seconds(60)
    let weir = Weir()
    weir.open(to: 20_000)
    fixture.script.play(version.answer { position in weir.pass(position) }, version.answer())
    let cache = try fixture.cache()
    let first = try cache.open(name, expected: 2_000_000, Call())
    #expect(try first.readBytes(100, at: 0) == slice(0, 100))
    // Its transfer is told to stop, and does not notice before the second reader waits for it.
    first.close()
    let second = try cache.open(name, expected: 2_000_000, Call())
    let bytes = Locked<[UInt8]>([])
    let reader = try Platform.Thread(name: "reader") {
      do throws(StoreError) {
        let read = try second.readBytes(1000, at: 50_000)
        bytes.withLock { $0 = read }
      } catch {
        Issue.record("\(error)")
      }
    }
    usleep(100_000)
    weir.open(to: .max)
    reader.join()
    #expect(bytes.withLock { $0 } == slice(50_000, 1000))
  }

  @Test func thirtyReadersAtRandomPlacesGetTheirBytes() throws {
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 2_000_000, Call())
    let bytes = version.bytes
    let wrong = Locked(0)
    let threads = try (0..<30).map { index in
      try Platform.Thread(name: "reader") {
        var random = SeededGenerator(seed: UInt64(index))
        do throws(StoreError) {
          for _ in 0..<20 {
            let start = Int.random(in: 0..<1_990_000, using: &random)
            let count = Int.random(in: 1..<10_000, using: &random)
            if try file.readBytes(count, at: Int64(start)) != Array(bytes[start..<(start + count)])
            {
              wrong.withLock { $0 += 1 }
            }
          }
        } catch {
          Issue.record(error)
        }
      }
    }
    for thread in threads { #expect(thread.join(until: .now + .seconds(60))) }
    #expect(wrong.withLock { $0 } == 0)
  }
}
