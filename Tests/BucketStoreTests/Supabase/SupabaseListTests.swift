import BucketStore
import Platform
import StorageEmulator
import TestSupport
import Testing

/// Listings against the emulator, with the real server's defects and without.
@Suite struct SupabaseListTests {
  private func fixture(
    _ profile: Configuration.Profile, _ listing: Configuration.Listing = .faithful,
    keys: [ByteString]
  ) throws -> SupabaseFixture {
    let fixture = try SupabaseFixture(Configuration(profile: profile, listing: listing))
    fixture.createBucket("docs")
    try fixture.emulator.put("docs", keys: keys, [1, 2, 3])
    return fixture
  }

  /// Lists with every page size and compares with what is there.
  private func check(
    _ fixture: SupabaseFixture, _ keys: [ByteString], below prefixes: [ByteString],
    pageSizes: some Sequence<Int>, delimited: Bool = true
  ) throws {
    for pageSize in pageSizes {
      let store = fixture.makeStore(key: fixture.emulator.serviceKey, pageSize: pageSize)
      for prefix in prefixes {
        let listed = try WholeListing(store, "docs", prefix, delimited: delimited)
        let held = WholeListing(of: keys, below: prefix, delimited: delimited)
        guard listed != held else { continue }
        Issue.record(
          "page size \(pageSize), prefix “\(prefix)”: \(listed.difference(from: held))")
      }
    }
  }

  @Test(arguments: Configuration.Listing.allCases)
  func everyEntryIsListedOnceWhateverThePageBorders(_ listing: Configuration.Listing) throws {
    let fixture = try fixture(.hosted, listing, keys: AwkwardNames.all)
    try check(fixture, AwkwardNames.all, below: [""], pageSizes: 1...45)
    try check(
      fixture, AwkwardNames.all,
      below: [
        "a/", "a//", "a.jpg.d/", "b/", "dir/", "/", "docs/", "Docs/", "e", "z/z/", "nothing/",
      ],
      pageSizes: [1, 2, 3, 1000])
  }

  @Test func flatListingsAreExact() throws {
    let fixture = try fixture(.local, keys: AwkwardNames.all)
    try check(
      fixture, AwkwardNames.all, below: ["", "a", "docs/", "e!/"],
      pageSizes: [1, 2, 7, 30, 1000], delimited: false)
  }

  @Test func fourThousandFilesHaveNoHoles() throws {
    let keys =
      (0..<3_998).map { ByteString("n\(10_000 + $0)") }
      + ["n10098.json", "n10499 (1)", "n10999-1"]
    let fixture = try fixture(.hosted, keys: keys)
    try check(fixture, keys, below: [""], pageSizes: [99, 100, 500, 999, 1000])
  }

  @Test func aFullLastPageHidesNothing() throws {
    let keys = (0..<1_000).map { ByteString("n\(10_000 + $0)") } + ["n10999.json"]
    let fixture = try fixture(.hosted, keys: keys)
    try check(fixture, keys, below: [""], pageSizes: [999, 1000])
  }

  @Test func aFolderBehindAPageBorderIsPassedOverAtOnce() throws {
    let keys =
      ["a", "b", "b.d/", "b.e", "b/x"]
      + (0..<3_000).map { ByteString("b.d/\(10_000 + $0)") }
    let fixture = try fixture(.hosted, keys: keys)
    let store = fixture.makeStore(key: fixture.emulator.serviceKey, pageSize: 2)
    #expect(
      try WholeListing(store, "docs", "", delimited: true)
        == WholeListing(of: keys, below: "", delimited: true))
    #expect(fixture.emulator.requests.entries().count < 12)
  }

  @Test func aPageCarriesTheFactsOfItsObjects() throws {
    let fixture = try fixture(.hosted, keys: [])
    try fixture.emulator.put(
      "docs", "a/page.html", Array("<p>hello</p>".utf8), contentType: "text/html")
    let page = try fixture.store.list(
      ListRequest(bucket: "docs", prefix: "a/", delimited: true), Call())
    let facts = try #require(fixture.emulator.object("docs", "a/page.html"))
    let listed = try #require(page.objects.first)
    #expect(listed.size == 12)
    #expect(listed.tag == facts.tag)
    #expect(listed.contentType == "text/html")
    #expect(listed.version == nil)
    let info = try fixture.store.info(ObjectName(bucket: "docs", key: "a/page.html"), Call())
    #expect(info.modified == listed.modified)
    #expect(info.version == facts.version)
  }

  @Test func oneFolderCostsOneRequestAThousandEntries() throws {
    let fixture = try fixture(.hosted, keys: (0..<250).map { ByteString("f/\($0)/x") } + ["f/y"])
    _ = try WholeListing(fixture.store, "docs", "f/", delimited: true)
    #expect(fixture.emulator.requests.entries().map(\.path) == ["/storage/v1/object/list-v2/docs"])
  }

  @Test(arguments: [Configuration.Profile.hosted, .old])
  func fortyFoldersOfManyFilesAreListedToTheLast(_ profile: Configuration.Profile) throws {
    var keys: [ByteString] = []
    for folder in (0..<38).map({ "folder \($0)" }) + ["docs", "Docs"] {
      for number in 0..<83 {
        keys += ["\(number).jpg", "\(number).jpg.json", "\(number).jpg (1)"].map {
          ByteString("\(folder)/\($0)")
        }
      }
      keys.append(ByteString("\(folder)/a.jpg"))
    }
    let fixture = try fixture(profile, keys: keys)
    let folders = Set(keys.map { $0.split(at: ByteString.slash)[0] + "/" }).sorted()
    #expect(folders.count == 40)
    try check(fixture, keys, below: [""] + folders, pageSizes: [profile == .old ? 1000 : 100])
    guard profile != .old else { return }
    try check(fixture, keys, below: [""], pageSizes: [1000], delimited: false)
  }

  @Test func aMissingBucketIsNoSignOfAnOldServer() throws {
    let store = try SupabaseStore.scripted(
      ScriptedTransport { _, _ in
        .success(.failure(400, "404", "Bucket not found", "Bucket not found"))
      })
    let request = ListRequest(bucket: "gone", prefix: "", delimited: true)
    #expect(try store.list(request, Call()) == ListPage(objects: [], folders: [], next: nil))
    #expect(store.capabilities.flatListing)
  }

  // MARK: - Version 1

  @Test(arguments: Configuration.Listing.allCases)
  func theOlderCallListsEveryEntryToo(_ listing: Configuration.Listing) throws {
    let fixture = try fixture(.old, listing, keys: AwkwardNames.all)
    try check(
      fixture, AwkwardNames.all,
      below: ["", "a/", "a//", "docs/", "Docs/", "DOCS/", "DOCS/sub/", "_/", "x_y/", "b/", "dir/"],
      pageSizes: [5, 50, 1000])
    #expect(try !listsFlat(fixture))
  }

  private func listsFlat(_ fixture: SupabaseFixture) throws -> Bool {
    _ = try WholeListing(fixture.store, "docs", "", delimited: true)
    return fixture.store.capabilities.flatListing
  }

  @Test func theOlderCallLosesNothingAtTheBordersOfItsBatches() throws {
    var keys: [ByteString] = []
    for number in 10_000..<13_000 {
      keys.append(ByteString("n\(number)"))
      guard number % 50 == 49 else { continue }
      keys += ["n\(number) (1)", "n\(number).d/x", "N\(number)"].map { ByteString($0 as String) }
    }
    let fixture = try fixture(.old, keys: keys)
    try check(fixture, keys, below: [""], pageSizes: [50, 1000])
  }

  @Test func foldersThatDifferInCaseAreToldApartOnTheOlderServer() throws {
    let keys: [ByteString] = [
      "Docs/a", "Docs/same", "docs/b", "docs/same", "docs/sub/x", "DOCS/Sub/y", "other/z",
    ]
    let fixture = try fixture(.old, keys: keys)
    try fixture.emulator.put("docs", "docs/same", [9])
    try check(
      fixture, keys, below: ["", "Docs/", "docs/", "DOCS/", "docs/sub/", "DOCS/Sub/", "other/"],
      pageSizes: [2, 1000])
    let page = try fixture.store.list(
      ListRequest(bucket: "docs", prefix: "docs/", delimited: true), Call())
    #expect(page.objects.map(\.size) == [3, 1])
  }

  @Test func theOlderServerTellsTheFactsOfOneObject() throws {
    let fixture = try fixture(.old, keys: ["Docs/a", "docs/ab", "n/1", "n/10"])
    try fixture.emulator.put("docs", "docs/a", [1])
    try fixture.emulator.put("docs", "docs/empty", [])
    func info(_ key: ByteString) throws(StoreError) -> ObjectInfo {
      try fixture.store.info(ObjectName(bucket: "docs", key: key), Call())
    }
    #expect(try info("docs/a").size == 1)
    #expect(try info("docs/a").tag == fixture.emulator.object("docs", "docs/a")?.tag)
    #expect(try info("Docs/a").size == 3)
    #expect(try info("n/1").size == 3)
    #expect(try info("docs/empty").size == 0)
    #expect(kind { () throws(StoreError) in _ = try info("DOCS/a") } == .notFound)
    #expect(kind { () throws(StoreError) in _ = try info("docs") } == .notFound)
  }
}
