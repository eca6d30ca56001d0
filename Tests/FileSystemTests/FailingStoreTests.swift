import BucketStore
import FileSystem
import Glibc
import Platform
import TestSupport
import Testing

/// What is kept while the store is reached, and fails.
@Suite struct FailingStoreTests {
  private let fixture: TreeFixture
  private let failure = StoreError(.server, "503")

  /// Every look asks the store, three times where it fails.
  init() throws {
    fixture = try TreeFixture(
      maxAge: .zero, behind: { ConnectedStore($0, network: Network()) })
    fixture.store.createBucket("b")
    fixture.store.put("b", "one/two/three/four/five/file", [1, 2, 3])
    for number in 0..<20 { fixture.store.put("b", ByteString("many/\(number)"), [4]) }
    _ = try fixture.contents("b/one/two/three/four/five/file")
    for number in 0..<20 { _ = try fixture.contents(ByteString("b/many/\(number)")) }
    _ = try fixture.walk()
    for _ in 0..<500 where fixture.cache.usage.files < 21 { usleep(10_000) }
    fixture.store.forgetRequests()
  }

  private func requests(_ routes: MemoryStore.Request.Route...) -> Int {
    fixture.store.requests.filter { routes.contains($0.route) }.count
  }

  private func failListings(_ error: StoreError?) {
    fixture.store.fail(.list, with: error)
    fixture.store.fail(.buckets, with: error)
    fixture.store.fail(.bucketExists, with: error)
  }

  @Test func listingsThatFailAreAskedForOnceNotInEveryFolder() throws {
    failListings(failure)
    let start = Instant.now
    #expect(try fixture.contents("b/one/two/three/four/five/file") == [1, 2, 3])
    for _ in 0..<3 { #expect(try fixture.walk().count == 21) }
    // A question in each folder, tried three times, would be a hundred.
    let questions = 1 + Int(Instant.now.since(start).seconds)
    #expect(requests(.list, .buckets) <= 3 * questions)
  }

  @Test func downloadsThatFailDoNotMakeEachCopyWait() throws {
    fixture.store.fail(.get, with: failure)
    let start = Instant.now
    for number in 0..<20 {
      #expect(try fixture.contents(ByteString("b/many/\(number)")) == [4])
    }
    let questions = 1 + Int(Instant.now.since(start).seconds)
    #expect(requests(.get) <= 3 * questions)
  }

  @Test func oneKindThatFailsDoesNotHideTheOther() throws {
    failListings(failure)
    #expect(try fixture.names("b/many").count == 20)
    fixture.store.put("b", "many/0", [5, 6])
    #expect(try fixture.contents("b/many/0") == [5, 6])
  }

  @Test func askingAnewEndsIt() throws {
    failListings(failure)
    #expect(try fixture.names("b/many").count == 20)
    failListings(nil)
    fixture.store.put("b", "many/new", [7])
    fixture.tree.distrust()
    #expect(try fixture.names("b/many").count == 21)
    #expect(fixture.tree.trouble == nil)
  }

  @Test func theFailureIsToldAndOverWhenTheStoreAnswersAgain() throws {
    failListings(failure)
    #expect(try fixture.names("b/many").count == 20)
    #expect(fixture.tree.trouble == "the store fails when folders are asked for: 503")
    failListings(nil)
    fixture.store.put("b", "many/new", [7])
    let deadline = Instant.now + .seconds(60)
    while try fixture.names("b/many").count == 20, Instant.now < deadline { usleep(20_000) }
    #expect(try fixture.names("b/many").count == 21)
    #expect(fixture.tree.trouble == nil)
  }

  /// Opens a file that is not kept.
  ///
  /// - Returns: why that failed; nil when it did not.
  private func openCold(_ number: Int) throws -> Errno? {
    let inode = try fixture.inode(ByteString("b/cold/\(number)"))
    do throws(Failure) {
      try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.slow).close()
      return nil
    } catch {
      return error.errno
    }
  }

  private func putCold() throws {
    for number in 0..<60 { fixture.store.put("b", ByteString("cold/\(number)"), [9]) }
    fixture.tree.distrust()
    #expect(try fixture.names("b/cold").count == 60)
    fixture.store.forgetRequests()
  }

  @Test func whatIsNotKeptIsRefusedAtOnceWhileEverythingFails() throws {
    try putCold()
    fixture.store.fail(.get, with: failure)
    #expect(try openCold(0) == .io)
    #expect(requests(.get) == 3, "the first one is tried again")
    let end = Instant.now + .milliseconds(1200)
    while Instant.now < end {
      #expect(try openCold(1) == .io)
      usleep(50_000)
    }
    fixture.store.forgetRequests()
    let start = Instant.now
    for number in 2..<60 { #expect(try openCold(number) == .io) }
    // Three tries each would be 174; one is let through from time to time.
    let probes = 1 + Int(Instant.now.since(start).seconds * 5)
    #expect(requests(.get) <= probes, "\(requests(.get))")
    #expect(try fixture.contents("b/many/3") == [4], "what is kept is served")
    fixture.store.fail(.get, with: nil)
    let deadline = Instant.now + .seconds(60)
    while try openCold(2) != nil, Instant.now < deadline { usleep(20_000) }
    for number in 3..<60 { #expect(try openCold(number) == nil) }
  }

  @Test func oneBrokenObjectDoesNotKeepTheOthersFromBeingOpened() throws {
    try putCold()
    fixture.store.fail(.get, with: failure)
    let end = Instant.now + .milliseconds(1500)
    while Instant.now < end { #expect(try openCold(0) == .io) }
    fixture.store.fail(.get, with: nil)
    for number in 1..<60 { #expect(try openCold(number) == nil) }
  }

  @Test func whatIsNotKeptFailsAllTheSame() throws {
    fixture.store.put("b", "cold/x", [8])
    fixture.tree.distrust()
    // A listing that took long is believed for longer than one that did not.
    for _ in 0..<6000 where try fixture.find("b/cold") == nil { usleep(10_000) }
    let cold = try fixture.inode("b/cold")
    failListings(failure)
    #expect(try fixture.names("b/many").count == 20)
    #expect(fixture.errno { _ = try fixture.tree.openDirectory(cold, TreeFixture.slow) } == .io)
  }

  @Test func onlyWhatTheStoreAloneKnowsLeavesTheBriefLane() throws {
    let many = try fixture.inode("b/many")
    let zero = try fixture.inode("b/many/0")
    fixture.store.put("b", "cold/x", [8])
    let cold = try fixture.inode("b/cold")
    #expect(throws: Failure.mustWait) { try fixture.tree.lookup("x", in: cold, TreeFixture.brief) }
    #expect(throws: Failure.mustWait) { try fixture.tree.openDirectory(cold, TreeFixture.brief) }
    let x = try fixture.inode("b/cold/x")
    #expect(throws: Failure.mustWait) {
      try fixture.tree.open(x, flags: O_RDONLY, TreeFixture.brief)
    }
    #expect(try fixture.tree.openDirectory(many, TreeFixture.brief).count == 22)
    let handle = try fixture.tree.open(zero, flags: O_RDONLY, TreeFixture.brief)
    #expect(try fixture.read(handle) == [4])
  }
}
