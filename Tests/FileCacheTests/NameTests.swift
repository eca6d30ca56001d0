import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import FileCache

@Suite struct NameTests {
  static let strange: [ByteString] = [
    "..", ".", "../x", "a/../../../x", "/etc/x", "//", "a//b", "a/", "a\\b", "a\nb", "\u{7F}",
    "\u{85}", "%2e%2e/x", "%2e%2e", "a+b c?#;", "ü", "u\u{308}", "-rf", "CACHEDIR.TAG", "lock",
    ByteString([0xFF, 0xFE]), ByteString([0x61, 0x00, 0x62]),
    ByteString(String(repeating: "n", count: 255)), ByteString(String(repeating: "n", count: 300)),
    ByteString(String(repeating: "é", count: 150)),
    ByteString(Array(repeating: "deep", count: 400).joined(separator: "/")),
    ByteString(String(repeating: "/", count: 5000)),
  ]

  @Test func everyNameIsKeptInsideTheCacheAndServedRight() throws {
    let fixture = try CacheFixture()
    try fixture.scratch.file("beside.txt", [9])
    for (index, key) in Self.strange.enumerated() {
      fixture.store.put("b", key, Array("object \(index)".utf8))
      fixture.store.put("..", key, Array("upper \(index)".utf8))
    }
    let cache = try fixture.cache()
    for bucket in ["b", ".."] as [ByteString] {
      for key in Self.strange {
        let info = try cache.ensure(ObjectName(bucket: bucket, key: key), Call())
        #expect(info.path.hasPrefix(ByteString(fixture.path("storage"))), "\(key)")
      }
    }
    fixture.store.outage = StoreError(.offline, "gone")
    for (index, key) in Self.strange.enumerated() {
      #expect(
        try cache.contents(ObjectName(bucket: "b", key: key)) == Array("object \(index)".utf8))
      #expect(
        try cache.contents(ObjectName(bucket: "..", key: key)) == Array("upper \(index)".utf8))
    }
    let outside = files(below: fixture.scratch.path).filter { !$0.hasPrefix("cache/") }
    #expect(outside == ["beside.txt"])
    let copies =
      files(below: fixture.path("storage")) + files(below: fixture.path("storage-hashed"))
    #expect(copies.count == 2 * Self.strange.count)
  }

  @Test(arguments: [true, false])
  func aKeyThatIsBothAnObjectAndAFolderHasBothCopies(_ isFolderFirst: Bool) throws {
    let fixture = try CacheFixture()
    fixture.store.put("b", "a", [1])
    fixture.store.put("b", "a/b", [2])
    fixture.store.put("b", "a/b/c", [3])
    let cache = try fixture.cache()
    let keys: [ByteString] = isFolderFirst ? ["a/b/c", "a/b", "a"] : ["a", "a/b", "a/b/c"]
    for key in keys { _ = try cache.ensure(object(key), Call()) }
    fixture.store.outage = StoreError(.offline, "gone")
    #expect(try cache.contents(object("a")) == [1])
    #expect(try cache.contents(object("a/b")) == [2])
    #expect(try cache.contents(object("a/b/c")) == [3])
    #expect(files(below: fixture.path("storage")) == [isFolderFirst ? "b/a/b/c" : "b/a"])
  }

  @Test func aFolderLinkPlantedInTheCacheIsNotFollowed() throws {
    let fixture = try CacheFixture()
    fixture.store.put("b", "a/k", [1, 2, 3])
    let cache = try fixture.cache()
    try fixture.scratch.folder("cache/storage/b")
    try fixture.scratch.folder("target")
    #expect(symlink(fixture.scratch.path("target"), fixture.path("storage/b/a")) == 0)
    #expect(try cache.contents(object("a/k")) == [1, 2, 3])
    _ = try cache.ensure(object("a/k"), Call())
    #expect(files(below: fixture.scratch.path("target")).isEmpty)
  }

  @Test func bucketAndKeyCannotRunTogether() {
    let left = CopyPath.hashed(ObjectName(bucket: "ab", key: "c"))
    let right = CopyPath.hashed(ObjectName(bucket: "a", key: "bc"))
    #expect(left != right)
    #expect(CopyPath.plain(ObjectName(bucket: "a/b", key: "c")) == nil)
    #expect(CopyPath.plain(ObjectName(bucket: "a", key: "")) == nil)
    #expect(CopyPath.plain(ObjectName(bucket: "a", key: "b/c")) == "storage/a/b/c")
  }
}
