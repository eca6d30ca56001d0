import BucketStore
import FileSystem
import Platform
import TestSupport
import Testing

/// A whole tree, as ls -lR goes through it.
@Suite struct WalkTests {
  private func fill(_ fixture: TreeFixture) {
    fixture.store.createBucket("b")
    for top in 0..<10 {
      for inner in 0..<10 {
        for file in 0..<20 {
          fixture.store.put("b", ByteString("top\(top)/inner\(inner)/file\(file).jpg"), [1, 2])
        }
      }
    }
  }

  @Test func twoThousandObjectsInAHundredAndTenFoldersTakeSixListings() throws {
    let fixture = try TreeFixture()
    fill(fixture)
    #expect(try fixture.walk().count == 2000)
    #expect(fixture.listings <= 6)
    fixture.store.forgetRequests()
    #expect(try fixture.walk().count == 2000)
    #expect(fixture.store.requests.isEmpty)
    try fixture.remount()
    #expect(try fixture.walk().count == 2000)
    #expect(fixture.store.requests.isEmpty)
    fixture.store.outage = StoreError(.offline, "offline")
    try fixture.remount()
    #expect(try fixture.walk().count == 2000)
  }

  @Test func theWalkedTreeIsBrowsableWithNoNetworkHoweverOld() throws {
    let fixture = try TreeFixture(maxAge: .zero)
    fill(fixture)
    try fixture.walk()
    fixture.store.outage = StoreError(.offline, "offline")
    try fixture.remount()
    #expect(try fixture.walk().count == 2000)
  }

  @Test func namesThatDifferOnlyALittleAreAllThere() throws {
    let fixture = try TreeFixture()
    fixture.store.createBucket("b")
    let keys: [ByteString] = [
      "docs/x", "Docs/x", "caf\u{E9}", "cafe\u{301}", "%2e%2e", "a+b", "a b", "a.jpg",
      "a.jpg.json", "a.jpg (1)", "a", "ab/", "ab/c",
    ]
    for key in keys { fixture.store.put("b", key, key.hasSuffix("/") ? [] : key.bytes) }
    for key in keys where !key.hasSuffix("/") {
      #expect(try fixture.contents("b/" + key) == key.bytes, "\(key)")
    }
    #expect(
      try fixture.walk().sorted()
        == keys.filter { !$0.hasSuffix("/") }.map { "b/" + $0 }.sorted())
    #expect(try fixture.inode("b/docs") != fixture.inode("b/Docs"))
    #expect(fixture.tree.hiddenKeyCount == 0)
  }

  @Test func keysThatCannotBePathsAreCountedAndReachNothing() throws {
    let fixture = try TreeFixture()
    fixture.store.createBucket("b")
    let keys: [ByteString] = ["/lead", "a//b", "../up", "both", "both/x", "con\u{1}trol"]
    for key in keys { fixture.store.put("b", key, [1]) }
    #expect(try fixture.walk() == ["b/both/x"])
    #expect(
      fixture.tree.hiddenKeys(limit: 10).map(\.key)
        == keys.filter { $0 != "both/x" }.sorted())
    #expect(fixture.tree.hiddenKeyCount == 5)
  }
}
