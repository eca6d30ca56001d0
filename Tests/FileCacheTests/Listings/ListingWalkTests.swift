import BucketStore
import FileCache
import Foundation
import Platform
import TestSupport
import Testing

/// Walks over a tree.
@Suite struct ListingWalkTests {
  private func tree(_ fixture: ListingFixture, folders: Int, files: Int) {
    for folder in 0..<folders {
      for file in 0..<files {
        fixture.store.put("b", ByteString("d\(folder % 10)/s\(folder)/f\(file)"), [1])
      }
    }
  }

  /// Opens every folder, depth first, in the order of names.
  @discardableResult
  private func walk(_ fixture: ListingFixture, _ prefix: ByteString = "") throws -> [ByteString] {
    let listing = try fixture.listings.current(folder(prefix), Call()).listing
    var found: [ByteString] = []
    for name in listing.names {
      if listing.entry(name)?.isFolder == true {
        found += try walk(fixture, prefix + name + "/")
      } else {
        found.append(prefix + name)
      }
    }
    return found
  }

  @Test func aWalkCostsOneRequestForAThousandKeys() throws {
    let fixture = try ListingFixture()
    tree(fixture, folders: 300, files: 20)
    #expect(try walk(fixture).count == 6000)
    #expect(fixture.requests.count <= 2 + 7)
    fixture.store.forgetRequests()
    try walk(fixture)
    #expect(fixture.requests.isEmpty)
    try fixture.restart()
    #expect(try walk(fixture).count == 6000)
    #expect(fixture.requests.isEmpty)
  }

  @Test func aWalkSeesWhatSingleListingsSee() throws {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<20 {
      let fixture = try ListingFixture()
      fixture.store.capabilities.pageSize = Int.random(in: 1...40, using: &random)
      let parts: [ByteString] = ["a", "a.b", "a-", "b", "B", "a a", "", "..", "é", "0"]
      for _ in 0..<Int.random(in: 1...120, using: &random) {
        let depth = Int.random(in: 1...4, using: &random)
        let key = (0..<depth).map { _ in parts.randomElement(using: &random) ?? "x" }
        fixture.store.put("b", ByteString(key.map(\.bytes).joined(separator: [47])) + "k", [1])
      }
      let walked = try walk(fixture)
      let hidden = fixture.listings.hiddenKeys(limit: 1000)
      fixture.store.capabilities.flatListing = true
      let alone = try ListingFixture()
      for key in try all(fixture.store) { alone.store.put("b", key, [1]) }
      #expect(try single(alone) == walked)
      #expect(alone.listings.hiddenKeys(limit: 1000) == hidden)
    }
  }

  private func all(_ store: MemoryStore) throws -> [ByteString] {
    var request = ListRequest(bucket: "b", prefix: "", delimited: false)
    var keys: [ByteString] = []
    repeat {
      let page = try store.list(request, Call())
      keys += page.objects.map(\.key)
      request.cursor = page.next
    } while request.cursor != nil
    return keys
  }

  /// Lists every folder for the sake of one name, which is no walk.
  private func single(_ fixture: ListingFixture, _ prefix: ByteString = "") throws -> [ByteString] {
    _ = try fixture.listings.find("k", in: folder(prefix), Call())
    let listing = try #require(fixture.listings.kept(folder(prefix)))
    var found: [ByteString] = []
    for name in listing.names {
      if listing.entry(name)?.isFolder == true {
        found += try single(fixture, prefix + name + "/")
      } else {
        found.append(prefix + name)
      }
    }
    return found
  }

  @Test func aWalkStopsWhenNobodyGoesOn() throws {
    let fixture = try ListingFixture()
    tree(fixture, folders: 300, files: 20)
    _ = try fixture.names()
    _ = try fixture.names("d0/")
    _ = try fixture.names("d0/s0/")
    _ = try fixture.names("d0/s10/")
    let asked = fixture.requests.count
    #expect(asked <= 4)
    usleep(200_000)
    #expect(fixture.requests.count == asked)
  }

  @Test func foldersOpenedInPeaceAreListedAlone() throws {
    let fixture = try ListingFixture()
    tree(fixture, folders: 30, files: 2)
    _ = try fixture.names("d1/")
    usleep(1_100_000)
    _ = try fixture.names("d2/")
    #expect(!fixture.requests.contains { !$0.delimited })
    #expect(fixture.requests.count == 2)
  }

  @Test func aStoreWithoutFlatListingsIsAskedForEachFolder() throws {
    let fixture = try ListingFixture()
    fixture.store.capabilities.flatListing = false
    tree(fixture, folders: 30, files: 2)
    #expect(try walk(fixture).count == 60)
    #expect(!fixture.requests.contains { !$0.delimited })
    #expect(fixture.requests.count == 41)
  }

  @Test func aFolderFarAheadIsListedAlone() throws {
    let fixture = try ListingFixture()
    fixture.store.capabilities.pageSize = 10
    tree(fixture, folders: 100, files: 5)
    _ = try fixture.names()
    _ = try fixture.names("d0/")
    #expect(try fixture.names("d9/").count == 10)
    let flat = fixture.requests.filter { !$0.delimited }.count
    #expect(flat <= 8)
    #expect(fixture.requests.last?.delimited == true)
  }

  @Test func aWalkThatFailsGoesOnWhereItWas() throws {
    let fixture = try ListingFixture()
    fixture.store.capabilities.pageSize = 50
    tree(fixture, folders: 100, files: 5)
    _ = try fixture.names()
    _ = try fixture.names("d0/")
    _ = try fixture.names("d0/s0/")
    fixture.store.outage = StoreError(.connectivity, "gone")
    #expect(
      failure { () throws(StoreError) in _ = try fixture.names("d5/s5/") } == .connectivity)
    fixture.store.outage = nil
    #expect(try walk(fixture).count == 500)
  }

  @Test func foldersOfAWalkThatIsRefusedAreListedAlone() throws {
    let fixture = try ListingFixture()
    tree(fixture, folders: 30, files: 2)
    let listings = Listings(
      store: LockedStore(fixture.store), database: nil,
      options: ListingOptions(maxAge: .seconds(60)))
    for (prefix, names) in [
      ("", (0..<10).map { ByteString("d\($0)") }), ("d0/", ["s0", "s10", "s20"]),
      ("d1/", ["s1", "s11", "s21"]), ("d2/", ["s12", "s2", "s22"]),
    ] as [(ByteString, [ByteString])] {
      #expect(try listings.current(folder(prefix), Call()).listing.names == names)
    }
  }

  /// Refuses flat listings, since somewhere in the tree is a folder that may not be read.
  private final class LockedStore: BucketStore {
    private let inner: MemoryStore

    init(_ inner: MemoryStore) { self.inner = inner }

    var capabilities: StoreCapabilities { inner.capabilities }
    var session: SessionState { inner.session }

    func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] { try inner.buckets(call) }
    func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
      try inner.bucketExists(bucket, call)
    }
    func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
      guard request.delimited else { throw StoreError(.refused, "locked") }
      return try inner.list(request, call)
    }
    func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
      try inner.info(object, call)
    }
    func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
      -> GetOutcome
    {
      try inner.get(request, into: sink, call)
    }
  }

  @Test func threadsThatWalkTogetherShareThePages() throws {
    let fixture = try ListingFixture()
    tree(fixture, folders: 300, files: 20)
    _ = try fixture.names()
    let listings = fixture.listings
    let found = Locked(0)
    let threads = try (0..<10).map { top in
      try Platform.Thread(name: "walker\(top)") {
        do throws(StoreError) {
          let inner = try listings.current(folder(ByteString("d\(top)/")), Call()).listing
          for name in inner.names {
            let prefix = ByteString("d\(top)/") + name + "/"
            let count = try listings.current(folder(prefix), Call()).listing.count
            found.withLock { $0 += count }
          }
        } catch {
          Issue.record("\(error)")
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(found.withLock { $0 } == 6000)
    #expect(fixture.requests.count < 60)
  }
}
