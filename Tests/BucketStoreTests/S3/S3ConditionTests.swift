import BucketStore
import Platform
import TestSupport
import Testing

/// Conditions of writes: what is sent, what is learnt, and what no other writer loses by it.
@Suite struct S3ConditionTests {
  private let fixture: S3Fixture

  init() throws {
    fixture = try S3Fixture(.seaweed)
    try fixture.createBucket("writes")
  }

  private func put(
    _ store: S3Store, _ key: String, _ bytes: [UInt8], _ condition: PutRequest.Condition,
    from source: (any PutSource)? = nil
  ) throws(StoreError) {
    try store.put(
      PutRequest(
        object: fixture.object("writes", key), size: Int64(bytes.count), contentType: "text/plain",
        userMetadata: [:], condition: condition),
      from: source ?? BytesSource(bytes), progress: { _ in }, Call())
  }

  private func read(_ key: String) throws -> [UInt8] {
    let sink = CollectingSink()
    _ = try fixture.makeStore().get(
      GetRequest(object: fixture.object("writes", key)), into: sink, Call())
    return sink.bytes
  }

  @Test func nothingIsWrittenTwiceToFindSomethingOut() throws {
    let fixture = fixture
    let wire = InterceptedTransport(
      fixture.client,
      after: { request, _ in
        guard request.method == "PUT" else { return }
        // Another writer is next.
        do { try fixture.put("writes", "a", [9]) } catch { Issue.record(error) }
      })
    let store = fixture.makeStore(wire)
    try put(store, "a", [1], .absent)
    #expect(wire.sent.filter { $0.method == "PUT" }.count == 1)
    #expect(try read("a") == [9])
    let version = try #require(try store.info(fixture.object("writes", "a"), Call()).version)
    try put(store, "a", [2], .version(version))
    #expect(wire.sent.filter { $0.method == "PUT" }.count == 2)
    #expect(try read("a") == [9])
    #expect(!store.writing.atomicCreate && !store.writing.atomicReplace)
  }

  @Test func aWriteThatIsTurnedAwayShowsThatConditionsAreKept() throws {
    let fixture = fixture
    let wire = InterceptedTransport(fixture.client) { request in
      // Another writer comes after the object was looked at.
      if request.method == "PUT" {
        do { try fixture.put("writes", "a", [9]) } catch { Issue.record(error) }
      }
      return nil
    }
    let store = fixture.makeStore(wire)
    do throws(StoreError) {
      try put(store, "a", [1], .absent)
      Issue.record("another's object was overwritten")
    } catch {
      #expect(error.kind == .exists)
    }
    #expect(try read("a") == [9])
    #expect(store.writing.atomicCreate && !store.writing.atomicReplace)
    // From now on the store itself looks.
    let looks = wire.sent.filter { $0.method == "HEAD" }.count
    do throws(StoreError) {
      try put(store, "a", [1], .absent)
      Issue.record("another's object was overwritten")
    } catch {
      #expect(error.kind == .exists)
    }
    #expect(wire.sent.filter { $0.method == "HEAD" }.count == looks)
  }

  @Test func conditionsOfAWSAreKnown() throws {
    let store = S3Store(
      address: try S3Address(endpoint: nil), credentials: { nil }, transport: fixture.client)
    #expect(store.writing.atomicCreate && store.writing.atomicReplace)
  }

  @Test func whatIsStoredAndWhatIsComparedIsSigned() throws {
    let wire = InterceptedTransport(fixture.client)
    let store = fixture.makeStore(wire)
    try put(store, "a", [1], .absent)
    let version = try #require(try store.info(fixture.object("writes", "a"), Call()).version)
    try put(store, "a", [1, 2], .version(version))
    _ = try store.get(
      GetRequest(object: fixture.object("writes", "a"), range: 1..<2), into: CollectingSink(),
      Call())
    func signed(_ request: HTTPRequest) -> Set<String> {
      let text = request.header("Authorization") ?? ""
      let names = text.components(between: "SignedHeaders=", and: ",")
      return Set(names.split(separator: ";").map(String.init))
    }
    let writes = wire.sent.filter { $0.method == "PUT" }.map(signed)
    #expect(writes.count == 2)
    for names in writes {
      #expect(names.isSuperset(of: ["host", "content-type", "content-md5", "x-amz-date"]))
    }
    #expect(writes.first?.contains("if-none-match") == true)
    #expect(writes.last?.contains("if-match") == true)
    let reads = wire.sent.filter { $0.method == "GET" }.map(signed)
    #expect(reads.contains { $0.contains("range") })
  }

  /// What was read is taken for sent.
  @Test func bytesAreReadOnlyWhenTheyAreSent() throws {
    final class WatchedSource: PutSource {
      private let bytes: [UInt8]
      private let counts = Locked((read: 0, ahead: 0))

      init(_ bytes: [UInt8]) {
        self.bytes = bytes
      }

      var read: Int { counts.withLock { $0.read } }
      var ahead: Int { counts.withLock { $0.ahead } }

      private func fill(_ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int {
        let part = bytes.dropFirst(Int(offset)).prefix(buffer.count)
        buffer.copyBytes(from: part)
        return part.count
      }

      func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        let count = fill(buffer, offset)
        counts.withLock { $0.read += count }
        return count
      }

      func readAhead(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno)
        -> Int
      {
        let count = fill(buffer, offset)
        counts.withLock { $0.ahead += count }
        return count
      }
    }
    let bytes = mixedBytes(100_000)
    let source = WatchedSource(bytes)
    let wire = InterceptedTransport(fixture.client) { request in
      if request.method == "PUT" {
        #expect(source.read == 0)
        #expect(source.ahead == bytes.count)
      }
      return nil
    }
    try put(fixture.makeStore(wire), "a", bytes, .absent, from: source)
    #expect(source.read == bytes.count)
    #expect(try read("a") == bytes)
  }

  /// Listings do not tell which tags are no digests.
  @Test func anEncryptedObjectIsTheOneThatTheListingShows() throws {
    try fixture.put("writes", "a", [1])
    let wire = InterceptedTransport(
      fixture.client,
      after: { request, response in
        if request.method == "HEAD" {
          response.headers["x-amz-server-side-encryption"] = "aws:kms"
        }
      })
    let store = fixture.makeStore(wire)
    let request = ListRequest(bucket: fixture.bucket("writes"), prefix: "", delimited: true)
    let before = try #require(try store.list(request, Call()).objects.first)
    let info = try store.info(fixture.object("writes", "a"), Call())
    let after = try #require(try store.list(request, Call()).objects.first)
    #expect(before == after)
    #expect(info.version == before.version && info.version != nil)
    #expect(EntityTag.areSame(info.tag, before.tag))
    // Nobody takes it for a digest.
    #expect(info.tag?.hasSuffix("-encrypted\"") == true)
    let version = try #require(before.version)
    try put(store, "a", [2], .version(version))
    #expect(try read("a") == [2])
  }
}

extension String {
  fileprivate func components(between start: String, and end: Character) -> Substring {
    guard let found = firstRange(of: start) else { return "" }
    return self[found.upperBound...].prefix { $0 != end }
  }
}
