import BucketStore
import FileCache
import Foundation
import Platform
import SQLite
import TestSupport
import Testing

/// How long listings are believed, and what they are good for afterwards.
@Suite struct ListingKeepTests {
  @Test func aFreshListingIsNotAskedForAgainAlsoAfterARestart() throws {
    let fixture = try ListingFixture()
    fixture.fill(["f/1", "f/2", "g"])
    let before = try fixture.names() + fixture.names("f/")
    try fixture.restart()
    fixture.store.forgetRequests()
    #expect(try fixture.names() + fixture.names("f/") == before)
    #expect(fixture.listings.fresh(folder("f/"))?.listing.entry("1")?.size == 3)
    #expect(fixture.store.requests.isEmpty)
  }

  @Test func aLongListingIsNotAskedForAgainEither() throws {
    let fixture = try ListingFixture()
    let tail = String(repeating: "x", count: 200)
    fixture.fill((0..<2500).map { ByteString("\($0)\(tail)") })
    #expect(try fixture.names().count == 2500)
    try fixture.restart()
    fixture.store.forgetRequests()
    #expect(
      fixture.listings.fresh(folder(""))?.listing.count == nil,
      "too long to be read without waiting")
    #expect(try fixture.names().count == 2500)
    #expect(fixture.listings.fresh(folder(""))?.listing.count == 2500)
    #expect(fixture.store.requests.isEmpty)
  }

  @Test func everyFactOfAnEntrySurvivesARestart() throws {
    let fixture = try ListingFixture()
    fixture.store.put("b", "x.jpg", [1, 2], contentType: "image/jpeg")
    fixture.store.put("b", "vague", [1])
    fixture.store.describe("b", "vague") {
      $0.size = nil
      $0.tag = nil
      $0.modified = nil
      $0.contentType = nil
    }
    fixture.fill(["d/1"])
    _ = try fixture.names()
    let before = try #require(fixture.listings.kept(folder("")))
    try fixture.restart()
    let after = try #require(fixture.listings.kept(folder("")))
    #expect((0..<after.count).map { after[$0] } == (0..<before.count).map { before[$0] })
    #expect(after.fetchedAt == before.fetchedAt && after.cost == before.cost)
    #expect(after.entry("vague")?.size == nil && after.entry("vague")?.tag == nil)
    #expect(after.entry("x.jpg")?.contentType == "image/jpeg")
  }

  @Test func whatACrashLeftUnfinishedIsNeverShown() throws {
    let fixture = try ListingFixture()
    fixture.fill(["1", "2"])
    _ = try fixture.names()
    try fixture.database.write { (connection) throws(DatabaseError) in
      try connection.execute(
        """
        INSERT INTO listings (id, bucket, prefix, fetched, cost, bytes, hidden, complete)
          SELECT 77, bucket, prefix, fetched + 1, cost, bytes, 0, 0 FROM listings
          WHERE bucket = CAST('b' AS BLOB);
        INSERT INTO entries (listing, name, kind) VALUES (77, CAST('torn' AS BLOB), 0);
        """)
    }
    try fixture.restart()
    #expect(try fixture.names() == ["1", "2"])
    let left = try fixture.database.read { (connection) throws(DatabaseError) in
      try connection.first("SELECT count(*) FROM entries WHERE listing = 77") { $0.integer(0) }
    }
    #expect(left == 0)
  }

  @Test func anOldListingIsAskedForAgainAndAnswersWhenThatFails() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(["1"])
    #expect(try fixture.names() == ["1"])
    fixture.fill(["2"])
    #expect(try fixture.names() == ["1", "2"])
    for kind in StoreError.Kind.allCases where kind != .cancelled && kind != .notFound {
      fixture.store.outage = StoreError(kind, "gone")
      #expect(try fixture.names() == ["1", "2"], "\(kind)")
    }
    fixture.store.outage = StoreError(.cancelled, "stop")
    #expect(failure { () throws(StoreError) in _ = try fixture.names() } == .cancelled)
  }

  @Test func withNothingKeptTheFailureIsTold() throws {
    let fixture = try ListingFixture()
    fixture.store.outage = StoreError(.offline, "offline")
    #expect(failure { () throws(StoreError) in _ = try fixture.names() } == .offline)
    fixture.store.outage = nil
    fixture.fill(["1"])
    #expect(try fixture.names() == ["1"])
  }

  @Test func afterAFailureTheKeptListingStandsInWithoutAsking() throws {
    let fixture = try ListingFixture(maxAge: .milliseconds(400))
    fixture.fill(["1"])
    _ = try fixture.names()
    usleep(450_000)
    fixture.store.outage = StoreError(.offline, "offline")
    fixture.store.forgetRequests()
    _ = try fixture.names()
    _ = try fixture.names()
    #expect(fixture.requests.count == 1)
  }

  @Test func aDearListingIsBelievedTenTimesAsLongAsItTook() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(["1"])
    let gate = Gate()
    fixture.store.inject(.wait(gate))
    let opener = try Platform.Thread(name: "opener") {
      gate.awaitArrivals(1)
      usleep(300_000)
      gate.open()
    }
    _ = try fixture.names()
    opener.join()
    let left = try #require(fixture.listings.fresh(folder("")))
    #expect(left.believed > .seconds(1.5))
    fixture.store.forgetRequests()
    _ = try fixture.listings.current(folder(""), Call())
    #expect(fixture.requests.isEmpty)
  }

  @Test func aListingFromTheFutureIsNotBelieved() throws {
    let fixture = try ListingFixture()
    fixture.fill(["1"])
    _ = try fixture.names()
    let listing = try #require(fixture.listings.kept(folder("")))
    #expect(listing.freshness(.seconds(60), at: listing.fetchedAt) == .seconds(60))
    #expect(
      listing.freshness(.seconds(60), at: Timestamp(nanoseconds: listing.fetchedAt.nanoseconds - 1))
        == .zero)
  }

  @Test func allWhoWantAListingShareOneRequest() throws {
    let fixture = try ListingFixture()
    fixture.fill(["1", "2"])
    let gate = Gate()
    fixture.store.inject(.wait(gate))
    let answers = Locked([[ByteString]]())
    let listings = fixture.listings
    let threads = try (0..<8).map { index in
      try Platform.Thread(name: "reader\(index)") {
        do throws(StoreError) {
          let names = try listings.current(folder(""), Call()).listing.names
          answers.withLock { $0.append(names) }
        } catch {
          Issue.record("\(error)")
        }
      }
    }
    gate.awaitArrivals(1)
    usleep(100_000)
    gate.open()
    for thread in threads { thread.join() }
    #expect(answers.withLock { $0 } == [[ByteString]](repeating: ["1", "2"], count: 8))
    #expect(fixture.requests.count == 1)
  }

  @Test func whoIsInterruptedTakesNobodyAlong() throws {
    let fixture = try ListingFixture()
    fixture.fill(["1"])
    fixture.store.inject(.wait(Gate()))
    let asker = Call()
    let waiter = Call()
    let listings = fixture.listings
    let outcomes = Locked([StoreError.Kind?]())
    let ask = { @Sendable (call: Call) in
      let kind = failure { () throws(StoreError) in _ = try listings.current(folder(""), call) }
      outcomes.withLock { $0.append(kind) }
    }
    let first = try Platform.Thread(name: "first") { ask(asker) }
    while fixture.requests.isEmpty { usleep(1000) }
    let second = try Platform.Thread(name: "second") { ask(waiter) }
    let third = try Platform.Thread(name: "third") { ask(Call()) }
    usleep(100_000)
    waiter.cancellation.cancel()
    second.join()
    #expect(outcomes.withLock { $0 } == [.cancelled])
    asker.cancellation.cancel()
    first.join()
    third.join()
    #expect(outcomes.withLock { $0 }.filter { $0 == nil }.count == 1)
    #expect(fixture.requests.count == 2)
  }

  @Test func aListingConfirmsTheObjectsThatItNames() throws {
    let fixture = try ListingFixture()
    fixture.fill(["1", "2", "d/3"])
    _ = try fixture.names()
    #expect(fixture.confirmed.withLock { $0 } == ["1", "2"])
  }

  @Test func changesAreToldToWhoObservesThem() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(["gone", "same", "other"])
    let told = Locked([(changed: [ByteString], added: [ByteString])]())
    fixture.listings.observe { old, new in
      let changes = old.changes(to: new)
      told.withLock { $0.append(changes) }
    }
    _ = try fixture.names()
    _ = try fixture.names()
    #expect(told.withLock { $0.isEmpty })
    fixture.store.remove("b", "gone")
    fixture.store.put("b", "other", [9, 9])
    fixture.fill(["new"])
    _ = try fixture.names()
    #expect(told.withLock { $0.map(\.changed) } == [["gone", "other"]])
    #expect(told.withLock { $0.map(\.added) } == [["new"]])
  }

  @Test func aFoldersTimeStaysUntilSomethingInItChanges() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(["d/1", "e"])
    _ = try fixture.names()
    let time = { fixture.listings.kept(folder(""))?.entry("d")?.modified }
    let first = try #require(time())
    _ = try fixture.names("d/")
    fixture.fill(["f"])
    _ = try fixture.names()
    try fixture.restart()
    #expect(time() == first)
    fixture.fill(["d/2"])
    _ = try fixture.names("d/")
    let second = try #require(time())
    #expect(second > first)
    try fixture.restart()
    #expect(time() == second)
  }

  @Test func whatIsGoneIsForgottenWithAllBeneath() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(["d/e/1", "d/2", "dz"])
    for prefix: ByteString in ["", "d/", "d/e/"] { _ = try fixture.names(prefix) }
    fixture.store.remove("b", "d/e/1")
    fixture.store.remove("b", "d/2")
    #expect(try fixture.names() == ["dz"])
    #expect(fixture.listings.kept(folder("d/e/"))?.count == nil)
    #expect(fixture.listings.kept(folder("d/"))?.count == nil)
  }

  /// An entry that was replaced while a listing was on its way, which is as the one before.
  @Test func aListingThatTellsTheOldStoryIsKeptWholeAllTheSame() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(["1", "2"])
    _ = try fixture.names()
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .list)
    fixture.expire(folder(""))
    let listings = fixture.listings
    let asker = try Platform.Thread(name: "asker") {
      #expect(
        failure { () throws(StoreError) in _ = try listings.current(folder(""), Call()) } == nil)
    }
    gate.awaitArrivals(1)
    listings.replace("2", in: folder(""), with: nil)
    gate.open()
    asker.join()
    #expect(listings.kept(folder(""))?.names == ["1", "2"])
    try fixture.restart()
    #expect(fixture.listings.kept(folder(""))?.names == ["1", "2"])
  }

  @Test func memoryAndIndexSayTheSameHoweverChangesMeet() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill((0..<40).map { ByteString("\($0)") })
    _ = try fixture.names()
    for round in 0..<8 {
      let listings = fixture.listings
      let store = fixture.store
      _ = try inParallel(4) { number in
        for step in 0..<25 {
          let name = ByteString("\((number * 7 + step) % 40)")
          switch (number + step) % 3 {
          case 0: listings.replace(name, in: folder(""), with: nil)
          case 1:
            let entry = ListingEntry(name: name, kind: .file, size: Int64(round * 100 + step))
            listings.replace(name, in: folder(""), with: entry)
          default:
            store.put("b", name, [UInt8(step)])
            listings.distrust()
            _ = failure { () throws(StoreError) in _ = try listings.current(folder(""), Call()) }
          }
        }
      }
      let seen = try #require(listings.kept(folder("")))
      try fixture.restart()
      let kept = try #require(fixture.listings.kept(folder("")))
      #expect((0..<kept.count).map { kept[$0] } == (0..<seen.count).map { seen[$0] })
    }
  }

  @Test func aLongListingThatCannotBeWrittenLeavesNothingBehind() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.store.capabilities.pageSize = 50_000
    fixture.fill((0..<12_000).map { ByteString("k\($0)") })
    try fixture.database.write { (connection) throws(DatabaseError) in
      try connection.run(
        "CREATE TRIGGER full BEFORE INSERT ON entries WHEN new.name = CAST('k9' AS BLOB) "
          + "BEGIN SELECT RAISE(ABORT, 'no room'); END")
    }
    #expect(try fixture.names().count == 12_000)
    let rows = try fixture.database.read { (connection) throws(DatabaseError) in
      try connection.first("SELECT count(*) FROM entries") { $0.integer(0) }
    }
    #expect(rows == 0)
    try fixture.database.write { (connection) throws(DatabaseError) in
      try connection.run("DROP TRIGGER full")
    }
    // The same listing again: what memory has is not in the index yet.
    #expect(try fixture.names().count == 12_000)
    try fixture.restart()
    #expect(fixture.listings.kept(folder(""))?.count == 12_000)
  }
}
