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

  @Test func aListingThatEndsHalfwayIsNotTakenForTheFolder() throws {
    let fixture = try ListingFixture()
    fixture.store.capabilities.pageSize = 1
    fixture.fill(["1", "2", "3"])
    let open = Gate()
    open.open()
    fixture.store.inject(.wait(open), on: .list)
    fixture.store.inject(.fail(StoreError(.notFound, "gone")), on: .list)
    #expect(failure { () throws(StoreError) in _ = try fixture.names() } == .server)
    #expect(fixture.listings.kept(folder(""))?.count == nil)
    #expect(try fixture.names() == ["1", "2", "3"])
  }

  @Test func theRootIsThereThoughItHoldsNothing() throws {
    let fixture = try ListingFixture { $0.root = folder("none/") }
    #expect(try fixture.names("none/") == [])
    #expect(failure { () throws(StoreError) in _ = try fixture.names("other/") } == .notFound)
    #expect(
      failure { () throws(StoreError) in
        _ = try fixture.listings.current(FolderName(bucket: "c", prefix: "none/"), Call())
      } == .notFound)
  }

  @Test(arguments: [SessionState.restoring, .signedOut])
  func aWalkDropsNothingWhenTheSessionIsLostBetweenQuestionAndAnswer(_ session: SessionState)
    throws
  {
    let fixture = try ListingFixture()
    fixture.fill(["d/1", "d/2", "e/1"])
    fixture.store.session = .signedIn
    _ = try fixture.names()
    _ = try fixture.names("d/")
    _ = try fixture.names("e/")
    fixture.listings.distrust()
    fixture.store.remove("b", "d/2")
    fixture.store.forgetRequests()
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .list)
    let listings = fixture.listings
    let store = fixture.store
    let thread = try Platform.Thread(name: "stranger") {
      gate.awaitArrivals(1)
      store.session = session
      gate.open()
    }
    #expect(try listings.current(folder("d/"), Call()).listing.names == ["1", "2"])
    thread.join()
    #expect(fixture.requests.count == 1)
    #expect(listings.kept(folder("d/"))?.names == ["1", "2"])
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
