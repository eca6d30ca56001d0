import BucketStore
import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

/// Reads over real HTTP: what is sent byte by byte, who may see what, and answers that lie.
@Suite struct SupabaseEmulatorTests {
  private static let ann = Policies.User(
    email: "ann@example.org", password: "a",
    policies: [Policies.Policy(bucket: "docs", prefix: "ann/", allow: [.select])])

  private func fixture(
    _ profile: Configuration.Profile = .hosted, policies: Policies = Policies()
  ) throws -> SupabaseFixture {
    let fixture = try SupabaseFixture(Configuration(profile: profile, policies: policies))
    fixture.createBucket("docs")
    return fixture
  }

  private func get(
    _ store: any BucketStore, _ key: ByteString, range: Range<Int64>? = nil, tag: String? = nil,
    fresh: String? = nil, _ sink: CollectingSink = CollectingSink()
  ) throws(StoreError) -> CollectingSink {
    _ = try store.get(
      GetRequest(
        object: ObjectName(bucket: "docs", key: key), range: range, unlessTag: tag, fresh: fresh),
      into: sink, Call())
    return sink
  }

  @Test(
    arguments: [
      ("100%.txt", "100%25.txt"), ("a%41.txt", "a%2541.txt"), ("a?b", "a%3Fb"), ("a#b", "a%23b"),
      ("a+b", "a%2Bb"), ("a;b", "a%3Bb"), ("a b", "a%20b"),
      (
        "a&b=c@d:e,f$g!h'(i)*",
        "a%26b%3Dc%40d%3Ae%2Cf%24g%21h%27%28i%29%2A"
      ), ("x/../y", "x/../y"), ("./x", "./x"),
      ("..", ".."), ("a//b", "a//b"), ("/lead", "/lead"), ("dir/", "dir/"), ("ü", "%C3%BC"),
      ("\"<>\\^`{|}~", "%22%3C%3E%5C%5E%60%7B%7C%7D~"), ("%2e%2e/x", "%252e%252e/x"),
    ] as [(ByteString, String)])
  func keysReachTheWireEncodedOnce(key: ByteString, path: String) throws {
    let fixture = try fixture()
    try fixture.emulator.put("docs", key, Array("right".utf8))
    let isLegal = key.bytes.allSatisfy(KeyEncoding.isTaken)
    let object = ObjectName(bucket: "docs", key: key)
    if isLegal {
      #expect(try fixture.store.info(object, Call()).key == key)
      #expect(try get(fixture.store, key).text == "right")
    } else {
      #expect(
        kind { () throws(StoreError) in _ = try fixture.store.info(object, Call()) } == .notFound)
      #expect(kind { () throws(StoreError) in _ = try get(fixture.store, key) } == .notFound)
    }
    #expect(
      fixture.emulator.requests.entries().map(\.path) == [
        "/storage/v1/object/info/authenticated/docs/" + path,
        "/storage/v1/object/authenticated/docs/" + path,
      ])
    let listed = try WholeListing(fixture.store, "docs", "", delimited: false)
    #expect(listed.keys == [key])
  }

  @Test func everyCallCarriesItsHeaders() throws {
    let fixture = try fixture()
    try fixture.emulator.put("docs", "a", Array("hello".utf8))
    let store = fixture.makeStore(
      key: fixture.emulator.publishableKey,
      headers: [("X-Team", "blue"), ("x-client-info", "mine/1")])
    _ = try store.buckets(Call())
    #expect(kind { () throws(StoreError) in _ = try get(store, "a", range: 1..<3) } == .notFound)
    let entries = fixture.emulator.requests.entries()
    #expect(entries.count == 2)
    for entry in entries {
      #expect(entry.headers["apikey"] == fixture.emulator.publishableKey)
      #expect(entry.headers["Authorization"] == nil)
      #expect(entry.headers["X-Team"] == "blue")
      #expect(entry.headers.fields.filter { $0.name.lowercased() == "x-client-info" }.count == 1)
      #expect(entry.headers["X-Client-Info"] == "mine/1")
    }
    #expect(entries[1].headers["Range"] == "bytes=1-2")
    #expect(entries[1].headers["Accept-Encoding"] == "identity")
  }

  @Test(arguments: Configuration.Profile.allCases)
  func listingsMayComeCompressed(_ profile: Configuration.Profile) throws {
    let fixture = try fixture(profile)
    try fixture.emulator.put("docs", "a", Array("hello".utf8))
    let page = try fixture.store.list(
      ListRequest(bucket: "docs", prefix: "", delimited: true), Call())
    #expect(page.objects.map(\.key) == ["a"])
    let entry = try #require(fixture.emulator.requests.entries().last { $0.method == "POST" })
    #expect(entry.headers["Accept-Encoding"]?.contains("gzip") == true)
  }

  @Test(arguments: Configuration.Profile.allCases)
  func anUnchangedObjectCostsNoBytes(_ profile: Configuration.Profile) throws {
    let fixture = try fixture(profile)
    try fixture.emulator.put("docs", "a", Array("hello".utf8))
    let tag = try #require(try get(fixture.store, "a").heads.first?.tag)
    let sink = try get(fixture.store, "a", tag: tag, fresh: "v/1")
    #expect(sink.heads.isEmpty)
    let entry = try #require(fixture.emulator.requests.entries().last)
    #expect(entry.status == 304 && entry.bytesOut == 0)
    #expect(entry.headers["If-None-Match"] == tag)
    #expect(entry.path.hasSuffix("/docs/a?cacheNonce=v%2F1"))
  }

  @Test func aSignedInUserSeesWhatThePolicyShows() throws {
    let fixture = try fixture(policies: Policies(users: [Self.ann]))
    try fixture.emulator.put("docs", "ann/a", [1])
    try fixture.emulator.put("docs", "bob/b", [1])
    let scratch = try Scratch()
    let session = SupabaseSession(
      address: fixture.address, key: fixture.emulator.publishableKey,
      file: scratch.path("session.json"), transport: fixture.client)
    try session.signIn(email: "ann@example.org", password: "a", Call())
    let store = fixture.makeStore(
      key: fixture.emulator.publishableKey, sessionFile: scratch.path("session.json"))
    #expect(store.session == .signedIn)
    #expect(try store.info(ObjectName(bucket: "docs", key: "ann/a"), Call()).size == 1)
    #expect(
      kind { () throws(StoreError) in
        _ = try store.info(ObjectName(bucket: "docs", key: "bob/b"), Call())
      } == .notFound)
    #expect(try WholeListing(store, "docs", "", delimited: true).folders == ["ann/"])
    #expect(try store.buckets(Call()).isEmpty)
    #expect(try store.bucketExists("docs", Call()))
    #expect(try !store.bucketExists("missing", Call()))
  }

  @Test func aTokenThatExpiresBetweenPartsIsRenewedOnce() throws {
    let fixture = try fixture(policies: Policies(users: [Self.ann]))
    let bytes = SeededBytes.make(100_000)
    try fixture.emulator.put("docs", "ann/big", bytes)
    let scratch = try Scratch()
    let file = scratch.path("session.json")
    let session = SupabaseSession(
      address: fixture.address, key: fixture.emulator.publishableKey, file: file,
      transport: fixture.client)
    try session.signIn(email: "ann@example.org", password: "a", Call())
    let before = try StoredSession(file: file)
    let store = fixture.makeStore(key: fixture.emulator.publishableKey, sessionFile: file)
    var read: [UInt8] = []
    for start in stride(from: Int64(0), to: 100_000, by: 25_000) {
      // The token dies while the first part is on its way; the device's clock does not know.
      read += try get(store, "ann/big", range: start..<start + 25_000).bytes
      if start == 0 { fixture.emulator.advanceClock(seconds: 4_000) }
    }
    #expect(read == bytes)
    #expect(fixture.emulator.requests.entries().filter { $0.route == "auth" }.count == 2)
    #expect(try StoredSession(file: file) != before)
    #expect(store.session == .signedIn)
  }

  @Test func parallelReadersOfAnExpiredTokenRenewOnce() throws {
    let fixture = try fixture(policies: Policies(users: [Self.ann]))
    try fixture.emulator.put("docs", "ann/a", Array("hello".utf8))
    let scratch = try Scratch()
    let file = scratch.path("session.json")
    let session = SupabaseSession(
      address: fixture.address, key: fixture.emulator.publishableKey, file: file,
      transport: fixture.client)
    try session.signIn(email: "ann@example.org", password: "a", Call())
    fixture.emulator.advanceClock(seconds: 4_000)
    let store = fixture.makeStore(key: fixture.emulator.publishableKey, sessionFile: file)
    let kinds = try inParallel(12) { _ in
      kind { () throws(StoreError) in
        _ = try store.get(
          GetRequest(object: ObjectName(bucket: "docs", key: "ann/a")), into: CollectingSink(),
          Call())
      }
    }
    #expect(kinds == Array(repeating: nil, count: 12))
    #expect(fixture.emulator.requests.entries().filter { $0.route == "auth" }.count == 2)
  }

  @Test func aRevokedSessionSignsOutAndNothingIsFalselyMissing() throws {
    let fixture = try fixture(policies: Policies(users: [Self.ann]))
    try fixture.emulator.put("docs", "ann/a", [1])
    let scratch = try Scratch()
    let file = scratch.path("session.json")
    let session = SupabaseSession(
      address: fixture.address, key: fixture.emulator.publishableKey, file: file,
      transport: fixture.client)
    try session.signIn(email: "ann@example.org", password: "a", Call())
    let store = fixture.makeStore(key: fixture.emulator.publishableKey, sessionFile: file)
    fixture.emulator.revokeSessions()
    fixture.emulator.advanceClock(seconds: 4_000)
    #expect(kind { () throws(StoreError) in _ = try get(store, "ann/a") } == .sessionExpired)
    #expect(store.session == .signedOut)
    #expect(!store.session.isCredible)
    try session.signIn(email: "ann@example.org", password: "a", Call())
    #expect(try get(store, "ann/a").bytes == [1])
    #expect(store.session == .signedIn)
  }

  @Test func aWrongKeyIsNamed() throws {
    let fixture = try fixture()
    let store = fixture.makeStore(key: "sb_publishable_wrong")
    do throws(StoreError) {
      _ = try store.info(ObjectName(bucket: "docs", key: "a"), Call())
      Issue.record("a wrong key was taken")
    } catch {
      #expect(error.kind == .refused)
      #expect(error.message.contains("apikey"))
    }
  }

  @Test(arguments: ["public", "sign", "list", "list-v2", "info", "upload", "authenticated"])
  func bucketsNamedLikeRoutesAreRefused(name: String) throws {
    let fixture = try fixture()
    fixture.createBucket(name)
    let bucket = ByteString(name)
    #expect(
      kind { () throws(StoreError) in _ = try fixture.store.bucketExists(bucket, Call()) }
        == .refused)
    #expect(
      kind { () throws(StoreError) in
        _ = try fixture.store.list(
          ListRequest(bucket: bucket, prefix: "", delimited: true), Call())
      } == .refused)
    #expect(fixture.emulator.requests.entries().isEmpty)
  }

  @Test func namesThatNoBucketCanHaveAreMissingWithoutAsking() throws {
    let fixture = try fixture()
    let long = ByteString(String(repeating: "x", count: 101))
    for name in ["", "a/b", "ü", "a#b", long] as [ByteString] {
      #expect(try !fixture.store.bucketExists(name, Call()))
    }
    #expect(fixture.emulator.requests.entries().isEmpty)
  }

  // MARK: - Answers that lie, and failures

  @Test(arguments: [
    (Fault.Lie.html, StoreError.Kind.server), (.notModified, .server), (.length, .damaged),
    (.range, .damaged),
  ])
  func anAnswerThatLiesIsNoContent(lie: Fault.Lie, expected: StoreError.Kind) throws {
    for profile in [Configuration.Profile.hosted, .local] {
      let fixture = try fixture(profile)
      let bytes = SeededBytes.make(5_000)
      try fixture.emulator.put("docs", "a", bytes)
      fixture.emulator.setFault(Fault(route: "object", effect: .lie(lie, by: 7)))
      let sink = CollectingSink()
      let result = kind { () throws(StoreError) in
        _ = try get(fixture.store, "a", range: lie == .range ? 1_000..<2_000 : nil, sink)
      }
      #expect(result == expected || (lie == .length && result == .connectivity))
      #expect(bytes.starts(with: sink.bytes))
      if lie != .length { #expect(sink.heads.isEmpty) }
    }
  }

  @Test func theWholeInPlaceOfAPartSaysSo() throws {
    let fixture = try fixture()
    try fixture.emulator.put("docs", "a", Array("hello world".utf8))
    fixture.emulator.setFault(Fault(route: "object", effect: .lie(.whole)))
    let sink = try get(fixture.store, "a", range: 6..<11)
    #expect(sink.heads.first?.range == 0..<11)
    #expect(sink.text == "hello world")
  }

  @Test func weakTagsAreTheSameTags() throws {
    let fixture = try fixture()
    try fixture.emulator.put("docs", "a", [1])
    let tag = fixture.emulator.object("docs", "a")?.tag
    fixture.emulator.setFault(Fault(route: "object", effect: .lie(.weak)))
    #expect(try get(fixture.store, "a").heads.first?.tag == tag)
  }

  @Test func aPageOfAProxyIsNoListingAndNoInfo() throws {
    let fixture = try fixture()
    try fixture.emulator.put("docs", "a", [1])
    fixture.emulator.setFault(Fault(effect: .lie(.html)))
    #expect(kind { () throws(StoreError) in _ = try fixture.store.buckets(Call()) } == .server)
    #expect(
      kind { () throws(StoreError) in
        _ = try fixture.store.info(ObjectName(bucket: "docs", key: "a"), Call())
      } == .server)
    #expect(
      kind { () throws(StoreError) in
        _ = try fixture.store.list(
          ListRequest(bucket: "docs", prefix: "", delimited: true), Call())
      } == .server)
    #expect(fixture.store.capabilities.flatListing)
  }

  @Test(arguments: [
    ("SlowDown", StoreError.Kind.throttled), ("LockTimeout", .server), ("DatabaseTimeout", .server),
    ("DatabaseReadOnly", .server), ("InternalError", .server),
  ])
  func theServersTroublesAreTold(code: String, expected: StoreError.Kind) throws {
    for profile in Configuration.Profile.allCases {
      let fixture = try fixture(profile)
      try fixture.emulator.put("docs", "a", [1])
      fixture.emulator.setFault(Fault(effect: .trouble(code)))
      #expect(kind { () throws(StoreError) in _ = try get(fixture.store, "a") } == expected)
      #expect(
        kind { () throws(StoreError) in
          _ = try fixture.store.list(
            ListRequest(bucket: "docs", prefix: "", delimited: true), Call())
        } == expected)
    }
  }

  @Test(arguments: [502, 503, 520, 544])
  func aProxysPageIsTheServersFault(status: Int) throws {
    let fixture = try fixture()
    try fixture.emulator.put("docs", "a", [1])
    fixture.emulator.setFault(
      Fault(effect: .status(status, .string("<html>gateway</html>"))))
    let sink = CollectingSink()
    #expect(kind { () throws(StoreError) in _ = try get(fixture.store, "a", sink) } == .server)
    #expect(sink.heads.isEmpty)
  }

  @Test func aBodyCutAnywhereIsNeverWhole() throws {
    let fixture = try fixture()
    let bytes = Array("0123456789".utf8)
    try fixture.emulator.put("docs", "a", bytes)
    for cut in 0..<10 {
      fixture.emulator.setFault(Fault(route: "object", times: 1, effect: .cut(after: cut)))
      let sink = CollectingSink()
      let result = kind { () throws(StoreError) in _ = try get(fixture.store, "a", sink) }
      #expect(result == .damaged || result == .connectivity)
      #expect(bytes.starts(with: sink.bytes))
    }
    #expect(try get(fixture.store, "a").bytes == bytes)
  }

  @Test func aPartBeyondAShrunkenObjectIsDamaged() throws {
    for profile in Configuration.Profile.allCases {
      let fixture = try fixture(profile)
      try fixture.emulator.put("docs", "a", [1, 2, 3])
      try fixture.emulator.put("docs", "empty", [])
      #expect(
        kind { () throws(StoreError) in _ = try get(fixture.store, "a", range: 3..<9) } == .damaged)
      #expect(
        kind { () throws(StoreError) in _ = try get(fixture.store, "empty", range: 5..<9) }
          == .damaged)
      #expect(
        kind { () throws(StoreError) in _ = try get(fixture.store, "empty", range: 0..<9) }
          == .damaged)
    }
  }
}

/// Bytes of no pattern.
enum SeededBytes {
  static func make(_ count: Int) -> [UInt8] {
    var random = SeededGenerator(seed: UInt64(count))
    return random.bytes(count)
  }
}
