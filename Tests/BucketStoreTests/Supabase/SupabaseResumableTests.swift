import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

@testable import BucketStore

/// Uploads in parts over real HTTP: broken off, gone on with, forgotten, finished.
@Suite struct SupabaseResumableTests {
  private static let part = 6 << 20
  private let bytes = mixedBytes(2 * 6 << 20 + 1_500_000)

  private func upload(
    _ fixture: WritingFixture, _ request: PutRequest, _ token: UploadToken, _ bytes: [UInt8],
    store: SupabaseStore? = nil, progress: @escaping @Sendable (Int64) -> Void = { _ in }
  ) throws(StoreError) {
    try (store ?? fixture.store).continueUpload(
      token, request, from: BytesSource(bytes), progress: progress, Call())
  }

  private func parts(_ fixture: WritingFixture) -> [RequestLog.Entry] {
    fixture.requests.filter { $0.method == "PATCH" }
  }

  @Test(arguments: [Configuration.Profile.hosted, .local])
  func anUploadGoesInPartsOfSixMebibytes(_ profile: Configuration.Profile) throws {
    let fixture = try WritingFixture(Configuration(profile: profile))
    let request = fixture.request("a b.bin", bytes.count, type: "image/png; x=y")
    let token = try fixture.store.beginUpload(request, Call())
    let told = Locked<[Int64]>([])
    try upload(fixture, request, token, bytes) { count in told.withLock { $0.append(count) } }
    #expect(try fixture.emulator.bytes("docs", "a b.bin") == bytes)
    let facts = try #require(fixture.emulator.object("docs", "a b.bin"))
    #expect(facts.contentType == "image/png")
    #expect(facts.cacheControl == "no-cache")
    #expect(facts.userMetadata == ["mtime": "1.5", "sha256": "ab"])
    #expect(fixture.requests.map(\.method) == ["POST", "HEAD", "PATCH", "PATCH", "PATCH"])
    #expect(
      parts(fixture).map { $0.headers["Upload-Offset"] }
        == ["0", String(Self.part), String(2 * Self.part)])
    #expect(
      parts(fixture).map { $0.headers["Content-Length"] }
        == [String(Self.part), String(Self.part), "1500000"])
    for entry in fixture.requests where entry.method != "HEAD" {
      #expect(entry.headers["x-upsert"] == "true")
    }
    for entry in fixture.requests {
      #expect(entry.headers["Tus-Resumable"] == "1.0.0")
      #expect(entry.path.hasPrefix("/storage/v1/upload/resumable"))
    }
    let counts = told.withLock { $0 }
    #expect(counts == counts.sorted() && counts.last == Int64(bytes.count))
  }

  @Test(arguments: [1, 2_000_000, 6 << 20])
  func aBrokenPartIsGoneOnWithByAnotherStoreFromWhereItBroke(cut: Int) throws {
    let fixture = try WritingFixture()
    let request = fixture.request("a", bytes.count)
    let token = try fixture.store.beginUpload(request, Call())
    fixture.emulator.setFault(
      Fault(method: "PATCH", route: "tus", after: 1, times: 1, effect: .cutRequest(after: cut)))
    #expect(
      kind { () throws(StoreError) in try upload(fixture, request, token, bytes) } == .connectivity)
    #expect(fixture.emulator.object("docs", "a") == nil)
    #expect(parts(fixture).count == 2)
    let restarted = fixture.supabase.makeStore(key: fixture.emulator.serviceKey)
    try upload(fixture, request, UploadToken(token.text), bytes, store: restarted)
    #expect(try fixture.emulator.bytes("docs", "a") == bytes)
    #expect(parts(fixture).map(\.bytesIn).reduce(0, +) == bytes.count)
    #expect(parts(fixture)[2].headers["Upload-Offset"] == String(Self.part + cut))
  }

  @Test func aCreationNeverReplacesWhatCameMeanwhile() throws {
    let fixture = try WritingFixture()
    let request = fixture.request("a", bytes.count, .absent)
    let token = try fixture.store.beginUpload(request, Call())
    let emulator = fixture.emulator
    let found = kind { () throws(StoreError) in
      try upload(fixture, request, token, bytes) { count in
        guard count == Self.part else { return }
        do {
          try emulator.put("docs", "a", [9])
        } catch {
          Issue.record("\(error)")
        }
      }
    }
    #expect(found == .exists)
    #expect(fixture.requests.allSatisfy { $0.headers["x-upsert"] == nil })
    #expect(try emulator.bytes("docs", "a") == [9])
    #expect(
      kind { () throws(StoreError) in _ = try fixture.store.beginUpload(request, Call()) }
        == .exists)
  }

  @Test func anUploadOfAnotherVersionIsNotOpened() throws {
    let fixture = try WritingFixture()
    try fixture.put("a", [1])
    let request = fixture.request("a", bytes.count, .version("another"))
    let found = kind { () throws(StoreError) in
      _ = try fixture.store.beginUpload(request, Call())
    }
    #expect(found == .conflict)
    #expect(fixture.requests.allSatisfy { $0.route != "tus" })
  }

  @Test func aTokenThatExpiresOnTheWayIsRenewed() throws {
    let fixture = try WritingFixture(
      Configuration(policies: Policies(users: [WritingFixture.ann]), tokenLife: 300))
    let scratch = try Scratch()
    let store = try fixture.signedIn(scratch)
    let request = fixture.request("a", bytes.count)
    let token = try store.beginUpload(request, Call())
    let emulator = fixture.emulator
    // Before the question how far it is, and once more between two parts.
    emulator.advanceClock(seconds: 400)
    let isOver = Locked(false)
    try upload(fixture, request, token, bytes, store: store) { count in
      guard count == Self.part, !isOver.withLock({ $0 }) else { return }
      isOver.withLock { $0 = true }
      emulator.advanceClock(seconds: 400)
    }
    #expect(try emulator.bytes("docs", "a") == bytes)
    let renewals = emulator.requests.entries().filter { $0.path.contains("refresh_token") }
    #expect(renewals.count == 2)
    #expect(parts(fixture).filter { $0.status == 204 }.count == 3)
  }

  @Test func aForgottenUploadIsNotFound() throws {
    let fixture = try WritingFixture()
    let request = fixture.request("a", bytes.count)
    let token = try fixture.store.beginUpload(request, Call())
    let unknown = kind { () throws(StoreError) in
      try upload(fixture, request, UploadToken("bm90aGluZw"), bytes)
    }
    #expect(unknown == .notFound)
    fixture.emulator.advanceClock(seconds: 4000)
    let expired = kind { () throws(StoreError) in try upload(fixture, request, token, bytes) }
    #expect(expired == .notFound)
    try fixture.store.abandonUpload(token, request, Call())
    #expect(parts(fixture).isEmpty)
  }

  @Test func anUploadThatEndsInAnErrorBeginsAgain() throws {
    let fixture = try WritingFixture()
    let request = fixture.request("a", bytes.count)
    let first = try fixture.store.beginUpload(request, Call())
    fixture.emulator.setFault(
      Fault(method: "PATCH", route: "tus", after: 2, times: 1, effect: .failCommit("LockTimeout")))
    #expect(
      kind { () throws(StoreError) in try upload(fixture, request, first, bytes) } == .server)
    #expect(fixture.emulator.object("docs", "a") == nil)
    #expect(
      kind { () throws(StoreError) in try upload(fixture, request, first, bytes) } == .notFound)
    #expect(parts(fixture).count == 3)
    let second = try fixture.store.beginUpload(request, Call())
    #expect(second != first)
    try upload(fixture, request, second, bytes)
    #expect(try fixture.emulator.bytes("docs", "a") == bytes)
  }

  @Test(arguments: [PutRequest.Condition.none, .absent])
  func anUploadWhoseLastAnswerIsLostIsFoundStored(_ condition: PutRequest.Condition) throws {
    let fixture = try WritingFixture()
    let request = fixture.request("a", bytes.count, condition)
    let token = try fixture.store.beginUpload(request, Call())
    fixture.emulator.setFault(
      Fault(method: "PATCH", route: "tus", after: 2, times: 1, effect: .loseAnswer))
    #expect(
      kind { () throws(StoreError) in try upload(fixture, request, token, bytes) } == .connectivity)
    try upload(fixture, request, token, bytes)
    #expect(parts(fixture).count == 3)
    #expect(try fixture.emulator.bytes("docs", "a") == bytes)
  }

  @Test func anOverwriteWithoutMetadataKeepsNone() throws {
    let fixture = try WritingFixture()
    try fixture.put("a", [1])
    let request = fixture.request("a", 3, metadata: [:])
    let token = try fixture.store.beginUpload(request, Call())
    try upload(fixture, request, token, [1, 2, 3])
    #expect(fixture.emulator.object("docs", "a")?.userMetadata == [:])
    #expect(fixture.emulator.object("docs", "a")?.size == 3)
  }

  @Test func anEmptyObjectIsCompleteAtOnce() throws {
    let fixture = try WritingFixture()
    let request = fixture.request("a", 0)
    let token = try fixture.store.beginUpload(request, Call())
    try upload(fixture, request, token, [])
    #expect(try fixture.emulator.bytes("docs", "a") == [])
  }

  @Test func anAbandonedUploadIsGoneWhateverItsState() throws {
    let fixture = try WritingFixture()
    let request = fixture.request("a", 10, .absent)
    let token = try fixture.store.beginUpload(request, Call())
    try fixture.put("a", [1])
    try fixture.store.abandonUpload(token, request, Call())
    try fixture.store.abandonUpload(token, request, Call())
    let other = fixture.request("b", 3)
    let finished = try fixture.store.beginUpload(other, Call())
    try upload(fixture, other, finished, [1, 2, 3])
    try fixture.store.abandonUpload(finished, other, Call())
    #expect(
      kind { () throws(StoreError) in try upload(fixture, request, token, bytes) } == .notFound)
    #expect(fixture.emulator.keys("docs") == ["a", "b"])
  }

  @Test func limitsAndPoliciesAreToldApart() throws {
    let fixture = try WritingFixture(
      Configuration(policies: Policies(users: [WritingFixture.ann])))
    let scratch = try Scratch()
    fixture.emulator.createBucket("small", sizeLimit: 100, allowedTypes: ["image/*"])
    let signedIn = try fixture.signedIn(scratch)
    func kindOf(
      _ bucket: ByteString, _ size: Int64, _ type: String, _ store: SupabaseStore
    ) -> StoreError.Kind? {
      kind { () throws(StoreError) in
        let request = PutRequest(
          object: ObjectName(bucket: bucket, key: "a"), size: size, contentType: type,
          userMetadata: [:], condition: .none)
        _ = try store.beginUpload(request, Call())
      }
    }
    #expect(kindOf("small", 101, "image/png", fixture.store) == .tooLarge)
    #expect(kindOf("small", 100, "text/plain", fixture.store) == .typeRefused)
    #expect(kindOf("small", 100, "image/png", signedIn) == .refused)
    #expect(kindOf("nowhere", 100, "image/png", fixture.store) == .notFound)
    #expect(kindOf("small", 100, "image/png", fixture.store) == nil)
  }

  @Test func aServerWithoutUploadsInPartsSaysSoOnce() throws {
    let fixture = try WritingFixture(Configuration(profile: .old))
    #expect(fixture.store.writing.resumable == Int64(Self.part) + 1)
    let found = kind { () throws(StoreError) in
      _ = try fixture.store.beginUpload(fixture.request("a", 10), Call())
    }
    #expect(found == .unsupported)
    #expect(fixture.store.writing.resumable == nil)
  }
}
