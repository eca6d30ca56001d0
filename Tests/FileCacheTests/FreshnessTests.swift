import BucketStore
import FileCache
import Foundation
import Platform
import TestSupport
import Testing

@Suite struct FreshnessTests {
  let fixture: CacheFixture
  let name = object("k")
  let info: ObjectInfo

  init() throws {
    fixture = try CacheFixture { $0.maxAge = .milliseconds(300) }
    info = fixture.store.put("b", "k", Array(repeating: 5, count: 1000))
  }

  /// A cache whose copy is no longer confirmed.
  private func aged() throws -> FileCache {
    let cache = try fixture.cache()
    _ = try cache.ensure(name, Call())
    usleep(320_000)
    #expect(cache.openConfirmed(name) == nil)
    return cache
  }

  @Test func aListingThatNamesTheSameVersionConfirmsTheCopy() throws {
    let cache = try aged()
    fixture.store.forgetRequests()
    cache.confirm([info], in: "b", at: .now)
    #expect(cache.openConfirmed(name) != nil)
    #expect(fixture.gets == 0)
  }

  @Test func aListingThatNamesAnotherTagSizeOrTimeDoesNot() throws {
    let cache = try aged()
    var tag = info
    tag.tag = "\"other\""
    var size = info
    size.size = 1001
    var time = info
    time.modified = Timestamp(seconds: 1_800_000_000)
    var none = info
    none.tag = nil
    for changed in [tag, size, time, none] {
      cache.confirm([changed], in: "b", at: .now)
      #expect(cache.openConfirmed(name) == nil)
    }
    cache.confirm([info], in: "c", at: .now)
    #expect(cache.openConfirmed(name) == nil)
  }

  @Test func anOldListingConfirmsNothing() throws {
    let cache = try aged()
    cache.confirm(
      [info], in: "b", at: Timestamp(seconds: Timestamp.now.nanoseconds / 1_000_000_000 - 10))
    #expect(cache.openConfirmed(name) == nil)
  }

  @Test func aTimeThatListingsAloneGiveIsLearnedOnceTheStoreConfirmsTheTag() throws {
    let cache = try aged()
    var listed = info
    listed.modified = Timestamp(seconds: 1_700_000_500)
    cache.confirm([listed], in: "b", at: .now)
    #expect(cache.openConfirmed(name) == nil)
    _ = try cache.contents(name)
    usleep(320_000)
    #expect(cache.openConfirmed(name) == nil)
    cache.confirm([listed], in: "b", at: .now)
    #expect(cache.openConfirmed(name) != nil)
  }

  @Test func aMomentInTheFutureIsNoConfirmation() throws {
    let cache = try aged()
    cache.confirm([info], in: "b", at: .now + .seconds(3600))
    #expect(cache.openConfirmed(name) == nil)
  }

  @Test func everyOpenAsksWhenMaxAgeIsZero() throws {
    let fixture = try CacheFixture()
    let info = fixture.store.put("b", "k", [1])
    let cache = try fixture.cache()
    _ = try cache.ensure(name, Call())
    cache.confirm([info], in: "b", at: .now)
    fixture.store.forgetRequests()
    for _ in 0..<3 { _ = try cache.contents(name) }
    #expect(fixture.gets == 3)
  }
}
