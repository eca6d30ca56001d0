import BucketStore
import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

/// Writes over real HTTP: what is sent, on which condition, and what a refusal comes to.
@Suite struct SupabaseWritingTests {
  @Test func aPutSendsTypeMetadataAndLength() throws {
    let fixture = try WritingFixture()
    let bytes = mixedBytes(300_000)
    let sent = Locked<[Int64]>([])
    try fixture.store.put(
      fixture.request("a b+c.jpg", bytes.count, type: "image/jpeg; q=1"), from: BytesSource(bytes),
      progress: { count in sent.withLock { $0.append(count) } }, Call())
    let entry = try #require(fixture.requests.last)
    #expect(fixture.requests.count == 1)
    #expect(entry.method == "POST")
    #expect(entry.path == "/storage/v1/object/docs/a%20b%2Bc.jpg")
    #expect(entry.headers["Content-Type"] == "image/jpeg")
    #expect(entry.headers["Cache-Control"] == "no-cache")
    #expect(entry.headers["Content-Length"] == "300000")
    #expect(entry.headers["Transfer-Encoding"] == nil)
    #expect(entry.headers["Expect"] == nil)
    #expect(entry.headers["x-upsert"] == "true")
    #expect(sent.withLock { $0.last } == 300_000)
    #expect(try fixture.emulator.bytes("docs", "a b+c.jpg") == bytes)
    let facts = try #require(fixture.emulator.object("docs", "a b+c.jpg"))
    #expect(facts.userMetadata == ["mtime": "1.5", "sha256": "ab"])
    #expect(facts.contentType == "image/jpeg")
    #expect(facts.cacheControl == "no-cache")
  }

  @Test(arguments: ["multipart/form-data; boundary=x", "", " ; charset=utf-8"])
  func aTypeThatCannotBeSentBecomesTheGeneralOne(type: String) throws {
    let fixture = try WritingFixture()
    try fixture.store.put(
      fixture.request("a", 2, type: type), from: BytesSource([1, 2]), progress: { _ in }, Call())
    #expect(fixture.emulator.object("docs", "a")?.contentType == "application/octet-stream")
    #expect(try fixture.emulator.bytes("docs", "a") == [1, 2])
  }

  @Test func aCreationNeverOverwrites() throws {
    let fixture = try WritingFixture()
    try fixture.put("a", [1], .absent)
    #expect(fixture.requests.last?.headers["x-upsert"] == nil)
    #expect(kind { () throws(StoreError) in try fixture.put("a", [2], .absent) } == .exists)
    #expect(try fixture.emulator.bytes("docs", "a") == [1])
  }

  @Test func anotherVersionIsAConflictBeforeAnythingIsSent() throws {
    let fixture = try WritingFixture()
    try fixture.put("a", [1])
    let version = try #require(try fixture.store.info(fixture.object("a"), Call()).version)
    try fixture.put("a", [2], .version(version))
    #expect(try fixture.emulator.bytes("docs", "a") == [2])
    fixture.emulator.requests.clear()
    #expect(
      kind { () throws(StoreError) in try fixture.put("a", [3], .version(version)) } == .conflict)
    #expect(
      kind { () throws(StoreError) in try fixture.put("b", [3], .version(version)) } == .conflict)
    #expect(fixture.requests.map(\.route) == ["info", "info"])
    #expect(try fixture.emulator.bytes("docs", "a") == [2])
  }

  @Test(
    arguments: [
      ("RowLevelSecurity", .refused), ("SlowDown", .throttled), ("S3SlowDown", .throttled),
      ("LockTimeout", .server), ("DatabaseTimeout", .server), ("DatabaseReadOnly", .server),
      ("ResourceLocked", .server), ("InternalError", .server), ("S3Error", .server),
      ("NoSuchBucket", .notFound), ("ExpiredToken", .refused),
    ] as [(String, StoreError.Kind)])
  func aRefusalHasItsKind(trouble: String, expected: StoreError.Kind) throws {
    let fixture = try WritingFixture()
    fixture.emulator.setFault(Fault(route: "upload", effect: .trouble(trouble)))
    let found = kind { () throws(StoreError) in try fixture.put("a", mixedBytes(1000)) }
    #expect(found == expected)
    #expect(fixture.emulator.object("docs", "a") == nil)
  }

  @Test func limitsOfTheBucketAreToldApart() throws {
    let fixture = try WritingFixture()
    fixture.emulator.createBucket("small", sizeLimit: 100_000, allowedTypes: ["image/*"])
    func kindOf(_ size: Int, _ type: String) -> StoreError.Kind? {
      kind { () throws(StoreError) in
        let request = PutRequest(
          object: ObjectName(bucket: "small", key: "a"), size: Int64(size), contentType: type,
          userMetadata: [:], condition: .none)
        try fixture.store.put(
          request, from: BytesSource(mixedBytes(size)), progress: { _ in }, Call())
      }
    }
    #expect(kindOf(10, "text/plain") == .typeRefused)
    #expect(kindOf(5_000_000, "image/png") == .tooLarge)
    #expect(kindOf(100_000, "image/png") == nil)
  }

  @Test func aPageOfAProxyIsNoSuccess() throws {
    let fixture = try WritingFixture()
    fixture.emulator.setFault(Fault(route: "upload", times: 1, effect: .lie(.html)))
    #expect(kind { () throws(StoreError) in try fixture.put("a", [1]) } == .server)
    fixture.emulator.setFault(
      Fault(route: "upload", times: 1, effect: .status(502, "<html>bad gateway</html>")))
    #expect(kind { () throws(StoreError) in try fixture.put("a", [1]) } == .server)
  }

  @Test(
    arguments: [
      ("a", true), ("a/b c!_-.*'()&$@=;:+,?", true), ("dir/", true), ("", false), ("~", false),
      ("é", false), ("a#", false), ("100%", false), ("a//b", false), ("/a", false), (".", false),
      ("a/../b", false), ("a/.", false), ("/", false), ("..a/b..", true), ("a\\b", false),
      ("a\u{7f}", false), (ByteString([0xFF]), false),
      (ByteString(String(repeating: "k", count: 860)), true),
      (ByteString(String(repeating: "k", count: 861)), false),
    ] as [(ByteString, Bool)])
  func whatTheStoreCannotNameIsRefusedUnasked(key: ByteString, isAllowed: Bool) throws {
    let fixture = try WritingFixture()
    #expect(fixture.store.allows(key) == isAllowed)
    let found = kind { () throws(StoreError) in try fixture.put(key, [1]) }
    #expect(found == (isAllowed ? nil : .keyRefused))
    #expect(fixture.requests.count == (isAllowed ? 1 : 0))
  }

  @Test func aConnectionCutInTheMiddleStoresNothing() throws {
    let fixture = try WritingFixture()
    let bytes = mixedBytes(2_000_000)
    fixture.emulator.setFault(
      Fault(route: "upload", times: 1, effect: .cutRequest(after: 700_000)))
    #expect(
      kind { () throws(StoreError) in try fixture.put("a", bytes, .absent) } == .connectivity)
    #expect(fixture.emulator.object("docs", "a") == nil)
    try fixture.put("a", bytes, .absent)
    #expect(try fixture.emulator.bytes("docs", "a") == bytes)
  }

  @Test(arguments: [false, true])
  func aCreationWhoseAnswerIsLostIsNotSentAgainUnasked(isKept: Bool) throws {
    let fixture = try WritingFixture()
    // A kept connection is the one that libcurl would try again by itself.
    if isKept { _ = try fixture.store.buckets(Call()) }
    fixture.emulator.setFault(Fault(route: "upload", times: 1, effect: .loseAnswer))
    let bytes = mixedBytes(50_000)
    #expect(
      kind { () throws(StoreError) in try fixture.put("a", bytes, .absent) } == .connectivity)
    #expect(fixture.requests.filter { $0.route == "upload" }.count == 1)
    #expect(try fixture.emulator.bytes("docs", "a") == bytes)
    #expect(kind { () throws(StoreError) in try fixture.put("a", bytes, .absent) } == .exists)
  }

  @Test func aTokenThatExpiredIsRenewedAndTheBytesAreSentAgain() throws {
    let fixture = try WritingFixture(
      Configuration(policies: Policies(users: [WritingFixture.ann]), tokenLife: 100))
    let scratch = try Scratch()
    let store = try fixture.signedIn(scratch)
    fixture.emulator.advanceClock(seconds: 200)
    let bytes = mixedBytes(400_000)
    try store.put(
      fixture.request("a", bytes.count), from: BytesSource(bytes), progress: { _ in }, Call())
    #expect(try fixture.emulator.bytes("docs", "a") == bytes)
    #expect(fixture.requests.map(\.status) == [400, 200])
  }

  @Test func manyKeysAreDeletedInPartsOfFiveHundred() throws {
    let fixture = try WritingFixture()
    let keys = (0..<1100).map { ByteString("many/\($0)") }
    try fixture.emulator.put("docs", keys: keys, [1])
    try fixture.put("kept", [1])
    let asked = keys + ["nothing", ByteString([0xFF])]
    let deleted = try fixture.store.delete(asked, in: "docs", Call())
    #expect(deleted == Set(keys))
    #expect(fixture.emulator.keys("docs") == ["kept"])
    #expect(fixture.requests.filter { $0.route == "remove" }.count == 3)
    #expect(try fixture.store.delete([], in: "docs", Call()).isEmpty)
  }

  @Test func aDeleteTellsARefusalFromAMissingObject() throws {
    let reader = Policies.User(
      email: WritingFixture.ann.email, password: "a",
      policies: [Policies.Policy(bucket: "docs", prefix: "", allow: [.select])])
    let fixture = try WritingFixture(Configuration(policies: Policies(users: [reader])))
    let scratch = try Scratch()
    let store = try fixture.signedIn(scratch)
    try fixture.put("a", [1])
    let refused = kind { () throws(StoreError) in try store.delete(fixture.object("a"), Call()) }
    #expect(refused == .refused)
    let missing = kind { () throws(StoreError) in try store.delete(fixture.object("b"), Call()) }
    #expect(missing == .notFound)
    #expect(try store.delete(["a"], in: "docs", Call()).isEmpty)
    #expect(fixture.emulator.keys("docs") == ["a"])
  }

  @Test func aCopyGoesToAnotherBucket() throws {
    let fixture = try WritingFixture()
    fixture.emulator.createBucket("other")
    try fixture.put("a", [1, 2])
    let target = ObjectName(bucket: "other", key: "b/c")
    try fixture.store.copy(fixture.object("a"), to: target, overwriting: false, Call())
    #expect(try fixture.emulator.bytes("other", "b/c") == [1, 2])
    #expect(fixture.emulator.object("other", "b/c")?.userMetadata?["mtime"] == "1.5")
  }

  @Test func aMoveWhoseAnswerIsLostIsNotSentAgainUnasked() throws {
    let fixture = try WritingFixture()
    try fixture.put("a", [1])
    fixture.emulator.setFault(Fault(route: "move", times: 1, effect: .loseAnswer))
    let lost = kind { () throws(StoreError) in
      try fixture.store.move(fixture.object("a"), to: "b", Call())
    }
    #expect(lost == .connectivity)
    #expect(fixture.requests.filter { $0.route == "move" }.count == 1)
    #expect(fixture.emulator.keys("docs") == ["b"])
  }
}
