import BucketStore
import FileCache
import Foundation
import Platform
import TestSupport
import Testing

@Suite struct EvictionTests {
  let fixture: CacheFixture

  init() throws {
    fixture = try CacheFixture { options in
      options.cacheSize = 1_000_000
      options.grace = .zero
    }
    for index in 0..<20 {
      fixture.store.put("b", ByteString("k\(index)"), Array(repeating: UInt8(index), count: 99_000))
    }
  }

  private func key(_ index: Int) -> ObjectName { object(ByteString("k\(index)")) }

  @Test func theLeastRecentlyUsedGoUntilATenthIsFree() throws {
    let cache = try fixture.cache()
    for index in 0..<10 { _ = try cache.ensure(key(index), Call()) }
    #expect(cache.usage.bytes == 990_000)
    _ = try cache.contents(key(0))
    _ = try cache.ensure(key(10), Call())
    #expect(eventually { cache.usage.bytes <= 900_000 })
    #expect(cache.copy(of: key(0)) != nil, "used again")
    #expect(cache.copy(of: key(10)) != nil)
    #expect(cache.copy(of: key(1)) == nil)
    #expect(eventually { files(below: fixture.path("storage")).count == cache.usage.files })
  }

  @Test func aFileThatIsReadStays() throws {
    let cache = try fixture.cache()
    _ = try cache.ensure(key(0), Call())
    let file = try cache.open(key(0), Call())
    for index in 1..<15 { _ = try cache.ensure(key(index), Call()) }
    #expect(eventually { cache.usage.bytes <= 1_000_000 })
    #expect(cache.copy(of: key(0)) != nil)
    #expect(try file.readAll() == Array(repeating: 0, count: 99_000))
    file.close()
  }

  @Test func whatWasUsedJustNowStays() throws {
    fixture.options.grace = .seconds(30)
    let cache = try fixture.cache()
    for index in 0..<15 { _ = try cache.ensure(key(index), Call()) }
    usleep(500_000)
    #expect(cache.usage.files == 15)
  }

  @Test func withoutABoundNothingGoes() throws {
    fixture.options.cacheSize = nil
    let cache = try fixture.cache()
    for index in 0..<20 { _ = try cache.ensure(key(index), Call()) }
    usleep(300_000)
    #expect(cache.usage == CacheUsage(bytes: 20 * 99_000, limit: nil, files: 20))
  }

  @Test func belowZeroCountsAsZero() throws {
    fixture.options.cacheSize = -5
    let cache = try fixture.cache()
    #expect(cache.usage.limit == 0)
    #expect(try cache.contents(key(0)).count == 99_000)
    #expect(eventually { cache.usage.bytes == 0 })
  }

  @Test func theOrderOfUseSurvivesARestart() throws {
    var cache = try fixture.cache()
    for index in 0..<10 { _ = try cache.ensure(key(index), Call()) }
    _ = try cache.contents(key(0))
    cache = try fixture.reopen()
    _ = try cache.ensure(key(10), Call())
    #expect(eventually { cache.usage.bytes <= 900_000 })
    #expect(cache.copy(of: key(0)) != nil)
    #expect(cache.copy(of: key(1)) == nil)
  }

  @Test func anEvictedFileThatIsOpenIsReadOn() throws {
    let cache = try fixture.cache()
    _ = try cache.ensure(key(3), Call())
    let file = try cache.open(key(3), Call())
    cache.drop(key(3))
    #expect(eventually { !fixture.exists("storage/b/k3") })
    #expect(try file.readAll() == Array(repeating: 3, count: 99_000))
  }
}
