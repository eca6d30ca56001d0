import BucketStore
@testable import FileCache
import Platform
import TestSupport
import Testing

/// The bound of kept listings.
@Suite struct ListingBoundTests {
  /// Lists so many folders, one after the other, of about 2 KiB each.
  private func list(_ count: Int, _ fixture: ListingFixture) throws {
    fixture.store.capabilities.flatListing = false
    for folder in 0..<count {
      let prefix = ByteString("f\(folder + 100)/")
      for file in 0..<20 { fixture.store.put("b", prefix + ByteString("file\(file)"), [1]) }
      _ = try fixture.names(prefix)
    }
  }

  private func kept(_ count: Int, _ fixture: ListingFixture) -> [Int] {
    (0..<count).filter { fixture.listings.kept(folder(ByteString("f\($0 + 100)/"))) != nil }
  }

  @Test func theOldestGoTenAtATimeToTheBound() throws {
    let fixture = try ListingFixture { $0.limit = 60_000 }
    try list(30, fixture)
    let one = fixture.listings.keptBytes / 30
    #expect(kept(30, fixture) == Array(0..<30))
    try list(40, fixture)
    let left = kept(40, fixture)
    #expect(fixture.listings.keptBytes <= 60_000)
    #expect(left.last == 39 && left == Array((40 - left.count)..<40))
    #expect((40 - left.count) % 10 == 0 && left.count < 40, "\(one) bytes each")
  }

  @Test func whatLiesAboveStaysAsLongAsSomethingBeneath() throws {
    let fixture = try ListingFixture { $0.limit = 60_000 }
    for folder in 0..<80 {
      for file in 0..<20 {
        fixture.store.put("b", ByteString("top/mid/f\(folder + 100)/file\(file)"), [1])
      }
    }
    _ = try fixture.listings.current(.buckets, Call())
    // One folder after the other, each a little younger: those above are the oldest of all.
    fixture.store.capabilities.flatListing = false
    for prefix in ["", "top/", "top/mid/"] as [ByteString] { _ = try fixture.names(prefix) }
    for folder in 0..<80 { _ = try fixture.names(ByteString("top/mid/f\(folder + 100)/")) }
    #expect(fixture.listings.keptBytes <= 60_000)
    #expect(fixture.listings.keptCount < 60)
    for prefix in ["", "top/", "top/mid/", "top/mid/f179/"] as [ByteString] {
      #expect(fixture.listings.kept(folder(prefix)) != nil, "\(prefix)")
    }
    #expect(fixture.listings.kept(.buckets) != nil)
    #expect(fixture.listings.kept(folder("top/mid/f100/")) == nil)
  }

  @Test func whatLiesAboveGoesInTheEnd() throws {
    let fixture = try ListingFixture { $0.limit = 4096 }
    fixture.store.capabilities.flatListing = false
    for level in 0..<6 {
      let path = String(repeating: "d/", count: level)
      for file in 0..<40 { fixture.store.put("b", ByteString("\(path)file\(file)"), [1]) }
    }
    for level in 0..<6 { _ = try fixture.names(ByteString(String(repeating: "d/", count: level))) }
    #expect(fixture.listings.keptBytes <= 4096)
  }

  @Test func listingsThatAreShownStay() throws {
    let fixture = try ListingFixture { $0.limit = 60_000 }
    try list(1, fixture)
    fixture.listings.show(folder("f100/"))
    try list(60, fixture)
    #expect(kept(60, fixture).first == 0)
    #expect(!kept(60, fixture).contains(1))
    fixture.listings.hide(folder("f100/"))
    try list(90, fixture)
    #expect(kept(90, fixture).first != 0)
  }

  @Test func aTinyBoundCountsAsFourKibibytesAndNoneNeverEvicts() throws {
    #expect(ListingOptions(maxAge: .zero, limit: 0).limit == 4096)
    #expect(ListingOptions(maxAge: .zero, limit: 5000).limit == 5000)
    #expect(ListingOptions(maxAge: .zero, limit: nil).limit == nil)
    let fixture = try ListingFixture { $0.limit = nil }
    try list(80, fixture)
    #expect(kept(80, fixture).count == 80)
  }

  @Test func aLargeBoundIsLeftByFiftyMegabytes() {
    #expect(Listings.goal(below: 100 << 20) == (100 << 20) - 50_000_000)
    #expect(Listings.goal(below: 50_000_001) == 1)
    #expect(Listings.goal(below: 50_000_000) == 50_000_000)
    #expect(Listings.goal(below: 4096) == 4096)
  }
}
