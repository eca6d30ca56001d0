import BucketStore
import FileCache
import Platform
import TestSupport
import Testing

/// What has to be true before an empty answer is believed.
@Suite struct ListingProofTests {
  private let fixture: ListingFixture

  init() throws {
    fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(["1", "d/2"])
    _ = try fixture.listings.current(.buckets, Call())
    _ = try fixture.names()
    _ = try fixture.names("d/")
  }

  private func buckets() throws -> [ByteString] {
    fixture.expire(.buckets)
    return try fixture.listings.current(.buckets, Call()).listing.names
  }

  @Test func anEmptyBucketIsEmpty() throws {
    fixture.store.remove("b", "1")
    fixture.store.remove("b", "d/2")
    #expect(try fixture.names() == [])
    #expect(failure { () throws(StoreError) in _ = try fixture.names("d/") } == .notFound)
    #expect(try buckets() == ["b"])
  }

  @Test func aMissingBucketTakesItsListingsAlong() throws {
    fixture.store.removeBucket("b")
    #expect(failure { () throws(StoreError) in _ = try fixture.names() } == .notFound)
    #expect(fixture.listings.kept(folder("d/"))?.count == nil)
    #expect(fixture.listings.kept(.buckets)?.names == [])
  }

  @Test func anEmptyAnswerIsNotBelievedWhenTheBucketCannotBeAskedFor() throws {
    fixture.store.remove("b", "1")
    fixture.store.remove("b", "d/2")
    fixture.store.inject(.fail(StoreError(.connectivity, "gone")), on: .bucketExists)
    #expect(try fixture.names() == ["1", "d"])
    #expect(fixture.listings.kept(folder("d/"))?.names == ["2"])
  }

  @Test(arguments: [SessionState.restoring, .signedOut])
  func nothingIsDroppedWhileNobodyIsSignedIn(_ session: SessionState) throws {
    fixture.store.session = session
    fixture.store.remove("b", "1")
    #expect(try fixture.names() == ["1", "d"])
    fixture.store.removeBucket("b")
    #expect(try fixture.names() == ["1", "d"])
    #expect(try fixture.names("d/") == ["2"])
    #expect(try buckets() == ["b"])
    #expect(failure { () throws(StoreError) in _ = try fixture.names("new/") } == .sessionExpired)
    fixture.store.session = .signedIn
    #expect(failure { () throws(StoreError) in _ = try fixture.names() } == .notFound)
  }

  @Test func aBucketThatIsNotListedIsFoundByItsName() throws {
    fixture.store.createBucket("secret", listed: false)
    fixture.store.put("secret", "x", [1])
    #expect(try buckets() == ["b"])
    #expect(try fixture.listings.find("secret", in: .buckets, Call()).entry?.isFolder == true)
    #expect(try fixture.listings.find("none", in: .buckets, Call()).entry == nil)
    #expect(try buckets() == ["b", "secret"])
    try fixture.restart()
    fixture.store.outage = StoreError(.offline, "offline")
    #expect(try buckets() == ["b", "secret"])
    #expect(try fixture.listings.find("none", in: .buckets, Call()).entry == nil)
  }

  @Test func whereNoBucketIsListedThoseKnownStay() throws {
    fixture.store.createBucket("b", listed: false)
    #expect(try buckets() == ["b"])
    fixture.store.removeBucket("b")
    fixture.store.createBucket("other", listed: false)
    #expect(try buckets() == [])
    #expect(failure { () throws(StoreError) in _ = try fixture.names() } == .notFound)
  }

  @Test func whoMayNotListBucketsReachesThemByName() throws {
    let fixture = try ListingFixture { $0.namedBuckets = ["named"] }
    fixture.store.inject(.fail(StoreError(.refused, "no")), on: .buckets)
    #expect(try fixture.listings.current(.buckets, Call()).listing.names == ["named"])
    #expect(try fixture.listings.find("b", in: .buckets, Call()).entry?.isFolder == true)
  }

  @Test func aNamedBucketIsShownWithNoNetwork() throws {
    let fixture = try ListingFixture { $0.namedBuckets = ["named"] }
    fixture.store.outage = StoreError(.offline, "offline")
    #expect(try fixture.listings.current(.buckets, Call()).listing.names == ["named"])
    #expect(
      failure { () throws(StoreError) in
        _ = try fixture.listings.current(FolderName(bucket: "named"), Call())
      } == .offline)
  }
}
