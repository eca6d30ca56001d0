import BucketStore
import Platform
import StorageEmulator
import TestSupport
import Testing

/// The stores that the writing half of the contract's suite runs over.
enum WritableStoreKind: String, CaseIterable, CustomTestStringConvertible {
  case memory
  case directory
  case supabaseHosted
  case supabaseLocal
  case s3Seaweed
  case s3Moto

  var testDescription: String { rawValue }

  /// A store with an empty bucket `photos`.
  func makeFixture() throws -> WritableFixture {
    switch self {
    case .memory:
      let store = MemoryStore()
      store.createBucket("photos")
      return WritableFixture(store: store, keptAlive: nil)
    case .directory:
      let fixture = try DirectoryFixture()
      try fixture.createBucket("photos")
      return WritableFixture(store: try DirectoryStore(fixture.path), keptAlive: fixture)
    case .supabaseHosted: return try Self.supabase(.hosted)
    case .supabaseLocal: return try Self.supabase(.local)
    case .s3Seaweed: return try Self.s3(.seaweed)
    case .s3Moto: return try Self.s3(.moto)
    }
  }

  private static func s3(_ kind: S3Server.Kind) throws -> WritableFixture {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("photos")
    let writable = WritableFixture(store: fixture.writable, keptAlive: fixture)
    // The first write of each kind finds out what the server keeps.
    try writable.put("first", [1], .absent)
    try writable.put("first", [2], .version(try #require(try writable.info("first").version)))
    try fixture.remove("photos", "first")
    return writable
  }

  private static func supabase(_ profile: Configuration.Profile) throws -> WritableFixture {
    let fixture = try SupabaseFixture(Configuration(profile: profile))
    fixture.createBucket("photos")
    return WritableFixture(
      store: fixture.makeStore(key: fixture.emulator.serviceKey), keptAlive: fixture)
  }
}

/// A store to write to, with what must live as long as it does.
struct WritableFixture {
  let store: any WritableStore
  let keptAlive: (any StoreFixture)?

  func put(
    _ key: ByteString, _ bytes: [UInt8], _ condition: PutRequest.Condition = .none,
    type: String = "text/plain", metadata: [String: String] = [:], call: Call = Call(),
    progress: @escaping @Sendable (Int64) -> Void = { _ in }
  ) throws {
    let request = PutRequest(
      object: ObjectName(bucket: "photos", key: key), size: Int64(bytes.count), contentType: type,
      userMetadata: metadata, condition: condition)
    try store.put(request, from: BytesSource(bytes), progress: progress, call)
  }

  func info(_ key: ByteString) throws -> ObjectInfo {
    try store.info(ObjectName(bucket: "photos", key: key), Call())
  }

  func bytes(_ key: ByteString) throws -> [UInt8] {
    let sink = CollectingSink()
    _ = try store.get(
      GetRequest(object: ObjectName(bucket: "photos", key: key)), into: sink, Call())
    return sink.bytes
  }

  var keys: [ByteString] {
    get throws {
      try store.list(ListRequest(bucket: "photos", prefix: "", delimited: false), Call())
        .objects.map(\.key)
    }
  }
}

/// What every store promises of writing (`WritableStore`), whatever lies behind it.
@Suite struct WritableStoreContractTests {
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

  private let photos: (ByteString) -> ObjectName = { ObjectName(bucket: "photos", key: $0) }

  @Test(arguments: WritableStoreKind.allCases)
  func whatIsPutIsReadBackWithItsTypeAndMetadata(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    var random = SeededGenerator(seed: 1)
    for size in [0, 1, 300_000] {
      let bytes = random.bytes(size)
      let key = ByteString("a/b/\(size)")
      let sent = Locked(Int64(0))
      let metadata = ["mtime": "1.5", "sha256": "ab=&%", "note": "Grüße"]
      try fixture.put(
        key, bytes, .absent, type: "image/jpeg", metadata: metadata,
        progress: { count in sent.withLock { $0 = count } })
      #expect(try fixture.bytes(key) == bytes)
      let info = try fixture.info(key)
      #expect(info.size == Int64(size))
      #expect(info.contentType == "image/jpeg")
      #expect(info.userMetadata == metadata)
      #expect(info.version != nil)
      #expect(sent.withLock { $0 } == Int64(size))
    }
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aCreationIsRefusedWhereThereIsOne(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.put("a", [1], .absent)
    #expect(self.kind { try fixture.put("a", [2], .absent) } == .exists)
    #expect(try fixture.bytes("a") == [1])
  }

  @Test(arguments: WritableStoreKind.allCases)
  func ofManyCreatorsExactlyOneWins(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    guard fixture.store.writing.atomicCreate else { return }
    let wins = Locked<[UInt8]>([])
    let threads = try (0..<8).map { number in
      try Thread(name: "creator") {
        do {
          try fixture.put("same", [UInt8](repeating: UInt8(number), count: 1000), .absent)
          wins.withLock { $0.append(UInt8(number)) }
        } catch {
          // Lost, as all but one must.
        }
      }
    }
    for thread in threads { thread.join() }
    let winner = wins.withLock { $0 }
    #expect(winner.count == 1)
    #expect(try fixture.bytes("same") == [UInt8](repeating: winner.first ?? 99, count: 1000))
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aReplacementNeedsTheVersionThatItNames(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.put("a", [1], .absent)
    let first = try #require(try fixture.info("a").version)
    try fixture.put("a", [2], .version(first))
    let second = try #require(try fixture.info("a").version)
    #expect(first != second)
    #expect(self.kind { try fixture.put("a", [3], .version(first)) } == .conflict)
    #expect(try fixture.bytes("a") == [2])
    #expect(self.kind { try fixture.put("new", [3], .version(first)) } == .conflict)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func anOverwriteReplacesBytesTypeAndMetadata(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.put("a", [1, 2, 3], type: "text/plain", metadata: ["x": "1"])
    try fixture.put("a", [9], type: "image/png", metadata: ["y": "2"])
    #expect(try fixture.bytes("a") == [9])
    let info = try fixture.info("a")
    #expect(info.contentType == "image/png")
    #expect(info.userMetadata == ["y": "2"])
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aCancelledPutStoresNothing(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    let call = Call()
    let bytes = [UInt8](repeating: 7, count: 1 << 20)
    let result = self.kind {
      try fixture.put("a", bytes, .absent, call: call) { _ in call.cancellation.cancel() }
    }
    #expect(result == .cancelled)
    #expect(self.kind { _ = try fixture.info("a") } == .notFound)
    #expect(try fixture.keys.isEmpty)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aSourceThatEndsEarlyStoresNothing(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    let request = PutRequest(
      object: photos("a"), size: 10, contentType: "text/plain", userMetadata: [:],
      condition: .none)
    let result = self.kind {
      try fixture.store.put(request, from: BytesSource([1, 2]), progress: { _ in }, Call())
    }
    #expect(result == .damaged)
    #expect(self.kind { _ = try fixture.info("a") } == .notFound)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aMissingBucketIsNotFound(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    let request = PutRequest(
      object: ObjectName(bucket: "nowhere", key: "a"), size: 1, contentType: "text/plain",
      userMetadata: [:], condition: .absent)
    let result = self.kind {
      try fixture.store.put(request, from: BytesSource([1]), progress: { _ in }, Call())
    }
    #expect(result == .notFound)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aDeletedObjectIsGoneAndASecondDeleteFindsNone(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.put("a/b", [1])
    try fixture.put("a/c", [1])
    try fixture.store.delete(photos("a/b"), Call())
    #expect(try fixture.keys == ["a/c"])
    #expect(self.kind { try fixture.store.delete(photos("a/b"), Call()) } == .notFound)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func manyAreDeletedAndTheAnswerSaysWhich(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    for key in ["a", "b", "c/d"] as [ByteString] { try fixture.put(key, [1]) }
    let deleted = try fixture.store.delete(["a", "c/d", "nothing"], in: "photos", Call())
    #expect(deleted == ["a", "c/d"])
    #expect(try fixture.keys == ["b"])
    #expect(try fixture.store.delete(["a"], in: "photos", Call()).isEmpty)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aMovedObjectIsUnderTheNewKeyOnlyWithItsMetadata(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.put("a", [1, 2], type: "image/png", metadata: ["x": "1"])
    try fixture.store.move(photos("a"), to: "deep/er/b", Call())
    #expect(try fixture.keys == ["deep/er/b"])
    #expect(try fixture.bytes("deep/er/b") == [1, 2])
    #expect(try fixture.info("deep/er/b").userMetadata == ["x": "1"])
    #expect(self.kind { try fixture.store.move(photos("a"), to: "c", Call()) } == .notFound)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aMoveNeverReplaces(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.put("a", [1])
    try fixture.put("b", [2])
    #expect(self.kind { try fixture.store.move(photos("a"), to: "b", Call()) } == .exists)
    #expect(try fixture.bytes("a") == [1])
    #expect(try fixture.bytes("b") == [2])
  }

  @Test(arguments: WritableStoreKind.allCases)
  func aCopyHasBytesAndMetadataAndReplacesOnlyWhenTold(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    try fixture.put("a", [1, 2], type: "image/png", metadata: ["x": "1"])
    try fixture.put("b", [3])
    let store = fixture.store
    try store.copy(photos("a"), to: photos("c/d"), overwriting: false, Call())
    #expect(try fixture.bytes("c/d") == [1, 2])
    #expect(try fixture.info("c/d").userMetadata == ["x": "1"])
    #expect(try fixture.info("c/d").contentType == "image/png")
    #expect(
      self.kind {
        try store.copy(photos("a"), to: photos("b"), overwriting: false, Call())
      } == .exists)
    #expect(try fixture.bytes("b") == [3])
    try store.copy(photos("a"), to: photos("b"), overwriting: true, Call())
    #expect(try fixture.bytes("b") == [1, 2])
    #expect(
      self.kind {
        try store.copy(photos("nothing"), to: photos("e"), overwriting: true, Call())
      } == .notFound)
  }

  @Test(arguments: WritableStoreKind.allCases)
  func readersSeeTheOldBytesOrTheNewNeverAMixture(_ kind: WritableStoreKind) throws {
    let fixture = try kind.makeFixture()
    let old = [UInt8](repeating: 1, count: 200_000)
    let new = [UInt8](repeating: 2, count: 200_000)
    try fixture.put("a", old)
    let writer = try Thread(name: "writer") {
      for round in 0..<20 {
        do {
          try fixture.put("a", round % 2 == 0 ? new : old)
        } catch {
          Issue.record("\(error)")
        }
      }
    }
    for _ in 0..<40 {
      do {
        let bytes = try fixture.bytes("a")
        #expect(bytes == old || bytes == new)
      } catch let error as StoreError {
        // An object that changes under a reader is told, not mixed.
        #expect(error.kind == .damaged || error.kind == .conflict)
      }
    }
    writer.join()
  }
}
