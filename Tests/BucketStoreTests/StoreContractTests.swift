import BucketStore
import Platform
import StorageEmulator
import TestSupport
import Testing

/// The stores that the contract's suite runs over.
enum StoreKind: String, CaseIterable, CustomTestStringConvertible {
  case directory
  case supabaseHosted
  case supabaseLocal
  case supabaseOld
  case s3Seaweed
  case s3Moto

  var testDescription: String { rawValue }

  func makeFixture(pageSize: Int = 1000) throws -> any StoreFixture {
    switch self {
    case .directory: try DirectoryFixture(pageSize: pageSize)
    case .supabaseHosted: try SupabaseFixture(pageSize: pageSize)
    case .supabaseLocal: try SupabaseFixture(Configuration(profile: .local), pageSize: pageSize)
    case .supabaseOld: try SupabaseFixture(Configuration(profile: .old), pageSize: pageSize)
    case .s3Seaweed: try S3Fixture(.seaweed, pageSize: pageSize)
    case .s3Moto: try S3Fixture(.moto, pageSize: pageSize)
    }
  }
}

/// What every store promises (`BucketStore`), whatever lies behind it.
@Suite struct StoreContractTests {
  private func read(
    _ store: any BucketStore, _ request: GetRequest
  ) throws -> (outcome: GetOutcome, sink: CollectingSink) {
    let sink = CollectingSink()
    return (try store.get(request, into: sink, Call()), sink)
  }

  private func listAll(
    _ store: any BucketStore, _ bucket: ByteString, _ prefix: ByteString, delimited: Bool
  ) throws -> (keys: [ByteString], folders: [ByteString]) {
    var request = ListRequest(bucket: bucket, prefix: prefix, delimited: delimited)
    var keys: [ByteString] = []
    var folders: [ByteString] = []
    while true {
      let page = try store.list(request, Call())
      keys += page.objects.map(\.key)
      folders += page.folders
      guard let next = page.next else { return (keys, folders) }
      request.cursor = next
    }
  }

  private func kind(_ body: () throws -> Void) -> StoreError.Kind? {
    do {
      try body()
      return nil
    } catch let error as StoreError {
      return error.kind
    } catch {
      Issue.record("not a store's error: \(error)")
      return nil
    }
  }

  @Test(arguments: StoreKind.allCases)
  func anObjectIsReadWholeWithItsFacts(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    let bytes = Array("hello, store".utf8)
    try fixture.put("photos", "a/b.txt", bytes)
    let object = ObjectName(bucket: "photos", key: "a/b.txt")

    let (outcome, sink) = try read(fixture.store, GetRequest(object: object))
    #expect(sink.bytes == bytes)
    let head = try #require(sink.heads.first)
    #expect(sink.heads.count == 1)
    #expect(outcome == .complete(head))
    #expect(head.size == 12)
    #expect(head.range == 0..<12)

    let info = try fixture.store.info(object, Call())
    #expect(info.key == object.key)
    #expect(info.size == 12)
    #expect(info.tag == head.tag)
    #expect(info.tag != nil)
    #expect(info.modified != nil)
  }

  @Test(arguments: StoreKind.allCases)
  func anEmptyObjectHasNoBytes(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "empty", [])
    let (_, sink) = try read(
      fixture.store, GetRequest(object: ObjectName(bucket: "photos", key: "empty")))
    #expect(sink.bytes.isEmpty)
    #expect(sink.heads.first?.size == 0)
  }

  @Test(arguments: StoreKind.allCases)
  func aRangeIsReadAloneAndCutAtTheEnd(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    try fixture.put("photos", "data", bytes)
    let object = ObjectName(bucket: "photos", key: "data")

    let (_, middle) = try read(fixture.store, GetRequest(object: object, range: 10..<20))
    #expect(middle.bytes == Array(bytes[10..<20]))
    #expect(middle.heads.first?.range == 10..<20)
    #expect(middle.heads.first?.size == 1000)

    let (_, end) = try read(fixture.store, GetRequest(object: object, range: 990..<2000))
    #expect(end.bytes == Array(bytes[990...]))
    #expect(end.heads.first?.range == 990..<1000)
  }

  @Test(arguments: StoreKind.allCases)
  func aRangeBeyondTheEndIsDamagedNotEmpty(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "data", [1, 2, 3])
    let sink = CollectingSink()
    let request = GetRequest(
      object: ObjectName(bucket: "photos", key: "data"), range: 100..<200)
    let result = self.kind { _ = try fixture.store.get(request, into: sink, Call()) }
    #expect(result == .damaged)
    #expect(sink.bytes.isEmpty)
  }

  @Test(arguments: StoreKind.allCases)
  func anUnchangedObjectIsNotSentAgain(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "a", [1])
    let object = ObjectName(bucket: "photos", key: "a")
    let tag = try #require(try fixture.store.info(object, Call()).tag)

    let (same, sink) = try read(fixture.store, GetRequest(object: object, unlessTag: tag))
    #expect(same == .notModified)
    #expect(sink.heads.isEmpty)

    try fixture.put("photos", "a", [2, 3])
    let (_, changed) = try read(fixture.store, GetRequest(object: object, unlessTag: tag))
    #expect(changed.bytes == [2, 3])
    #expect(changed.heads.first?.tag != tag)
  }

  @Test(arguments: StoreKind.allCases)
  func aMissingObjectIsNotFoundAndItsSinkHearsNothing(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "dir/x", [1])
    for key in ["missing", "dir", "dir/x/y"] as [ByteString] {
      let sink = CollectingSink()
      let object = ObjectName(bucket: "photos", key: key)
      #expect(
        self.kind { _ = try fixture.store.get(GetRequest(object: object), into: sink, Call()) }
          == .notFound)
      #expect(sink.heads.isEmpty)
      #expect(self.kind { _ = try fixture.store.info(object, Call()) } == .notFound)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func aSinkThatDeclinesCancelsTheRead(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "a", [UInt8](repeating: 7, count: 1 << 20))
    let request = GetRequest(object: ObjectName(bucket: "photos", key: "a"))
    let result = self.kind {
      _ = try fixture.store.get(request, into: CollectingSink(limit: 1000), Call())
    }
    #expect(result == .cancelled)
  }

  @Test(arguments: StoreKind.allCases)
  func bucketsAreListedAndAMissingOneIsToldFromAnEmptyOne(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.createBucket("docs")
    #expect(try fixture.store.buckets(Call()).map(\.name) == ["docs", "photos"])
    #expect(try fixture.store.bucketExists("docs", Call()))
    #expect(try !fixture.store.bucketExists("nothing", Call()))
    let empty = try listAll(fixture.store, "docs", "", delimited: true)
    #expect(empty.keys.isEmpty && empty.folders.isEmpty)
    let missing = try listAll(fixture.store, "nothing", "", delimited: true)
    #expect(missing.keys.isEmpty && missing.folders.isEmpty)
  }

  @Test(arguments: StoreKind.allCases, [1, 2, 3, 7, 1000])
  func pagesTogetherHoldEveryKeyOnceInOrder(_ kind: StoreKind, _ pageSize: Int) throws {
    let fixture = try kind.makeFixture(pageSize: pageSize)
    try fixture.createBucket("photos")
    let keys = [
      "a", "a (1).jpg", "a.jpg", "a.jpg (1)", "a.jpg.json", "b/1", "b/2", "b-2", "b.x", "c/d/e",
      "Docs/x", "docs/x", "docs/y", "docs_x", "n0500", "n0500 (1)", "n0500-1", "n0500.json",
    ]
    for (index, key) in keys.enumerated() {
      try fixture.put("photos", key, [UInt8](repeating: 1, count: index))
    }
    let store = fixture.store
    let top = try listAll(store, "photos", "", delimited: true)
    #expect(top.keys == keys.filter { !$0.contains("/") }.map { ByteString($0) }.sorted())
    #expect(top.folders == ["Docs/", "b/", "c/", "docs/"])

    let below = try listAll(store, "photos", "docs/", delimited: true)
    #expect(below.keys == ["docs/x", "docs/y"])
    let deep = try listAll(store, "photos", "c/", delimited: true)
    #expect(deep.keys.isEmpty && deep.folders == ["c/d/"])

    let flat: (keys: [ByteString], folders: [ByteString])
    do {
      flat = try listAll(store, "photos", "", delimited: false)
    } catch let error as StoreError {
      // A server may show only now that it keeps an order of its own.
      #expect(error.kind == .unsupported)
      #expect(!store.capabilities.flatListing)
      return
    }
    #expect(store.capabilities.flatListing)
    #expect(flat.keys == keys.map { ByteString($0) }.sorted())
    #expect(flat.folders.isEmpty)
    let subtree = try listAll(store, "photos", "b/", delimited: false)
    #expect(subtree.keys == ["b/1", "b/2"])
  }

  @Test(arguments: StoreKind.allCases)
  func aListingNamesTheTagAndSizeThatAReadGives(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "a.jpg", [1, 2, 3])
    let page = try fixture.store.list(
      ListRequest(bucket: "photos", prefix: "", delimited: true), Call())
    let listed = try #require(page.objects.first)
    let (_, sink) = try read(
      fixture.store, GetRequest(object: ObjectName(bucket: "photos", key: "a.jpg")))
    #expect(listed.size == 3)
    #expect(listed.tag == sink.heads.first?.tag)
  }

  @Test(arguments: StoreKind.allCases)
  func namesThatEscapeTheBucketAreNotFound(_ kind: StoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.createBucket("photos")
    try fixture.createBucket("secret")
    try fixture.put("secret", "x", [1])
    for key in ["../secret/x", "a/../../secret/x", "/x", "//x", "./x"] as [ByteString] {
      let object = ObjectName(bucket: "photos", key: key)
      #expect(self.kind { _ = try fixture.store.info(object, Call()) } == .notFound, "\(key)")
    }
    let object = ObjectName(bucket: "../photos", key: "x")
    #expect(self.kind { _ = try fixture.store.info(object, Call()) } != nil)
  }
}
