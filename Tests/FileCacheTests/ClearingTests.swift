import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import FileCache

@Suite struct ClearingTests {
  let fixture: CacheFixture

  init() throws {
    fixture = try CacheFixture { $0.partSize = 65_536 }
    for index in 0..<20 {
      fixture.store.put("b", ByteString("k\(index)"), Array(repeating: UInt8(index), count: 5000))
    }
    fixture.store.put("b", "large", Array(repeating: 7, count: 1_000_000))
  }

  @Test func clearingRemovesCopiesAndPartsAndWhoReadsReadsOn() throws {
    let cache = try fixture.cache()
    for index in 0..<20 { _ = try cache.ensure(object(ByteString("k\(index)")), Call()) }
    let large = try cache.open(object("large"), expected: 1_000_000, Call())
    #expect(try large.readBytes(10, at: 500_000).count == 10)
    let file = try cache.open(object("k3"), Call())
    try cache.clear()
    #expect(cache.usage == CacheUsage(bytes: 0, limit: 256 << 20, files: 0))
    #expect(files(below: fixture.path("storage")).isEmpty)
    #expect(try file.readAll() == Array(repeating: 3, count: 5000))
    #expect(try large.readBytes(10, at: 900_000) == Array(repeating: 7, count: 10))
    file.close()
    large.close()
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
    #expect(cache.copy(of: object("k3")) == nil)
    #expect(try cache.contents(object("k3")) == Array(repeating: 3, count: 5000))
    let again = try fixture.reopen()
    #expect(eventually { again.usage.files == 1 })
  }
}
