import BucketStore
import Platform
import TestSupport
import Testing

/// Keys of every make, through a store to a server and back.
@Suite struct S3KeyTests {
  private static let servers: [S3Server.Kind] = [.seaweed, .moto]

  private func put(_ store: any WritableStore, _ key: ByteString, _ bytes: [UInt8]) throws {
    try store.put(
      PutRequest(
        object: ObjectName(bucket: "keys", key: key), size: Int64(bytes.count),
        contentType: "text/plain", userMetadata: ["mtime": "1.5"], condition: .none),
      from: BytesSource(bytes), progress: { _ in }, Call())
  }

  private func read(_ store: any WritableStore, _ key: ByteString) throws -> [UInt8] {
    let sink = CollectingSink()
    _ = try store.get(
      GetRequest(object: ObjectName(bucket: "keys", key: key)), into: sink, Call())
    return sink.bytes
  }

  private func listed(_ store: any WritableStore, _ prefix: ByteString) throws -> [ByteString] {
    try store.list(ListRequest(bucket: "keys", prefix: prefix, delimited: true), Call())
      .objects.map(\.key)
  }

  /// Bytes that a key of these servers can hold: SeaweedFS takes `\` for `/`.
  private static let signs = (1...126).filter { ![47, 92].contains($0) }.map { UInt8($0) }

  @Test(arguments: servers) func everyAsciiSignIsInAKeyAsItIs(_ kind: S3Server.Kind) throws {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("keys")
    // Control characters alone: not every server keeps them.
    let signs = Self.signs.filter { $0 >= 32 }
    let store = fixture.writable
    for (index, sign) in signs.enumerated() {
      let key = ByteString("s/a") + ByteString([sign]) + "b"
      try put(store, key, [UInt8(index)])
      #expect(try read(store, key) == [UInt8(index)], "\(key)")
    }
    let expected = signs.map { ByteString("s/a") + ByteString([$0]) + "b" }.sorted()
    #expect(try listed(store, "s/") == expected)
  }

  @Test(arguments: servers) func unicodeAndEscapesAreNotTouched(_ kind: S3Server.Kind) throws {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("keys")
    let store = fixture.writable
    let keys: [ByteString] = [
      "u/Grüße 灯泡 😀.jpg", "u/Gru\u{308}ße.jpg", "u/%2F", "u/%25", "u/a+b c", "u/a%20b", "u/=C3=BC",
      "u/ leading", "u/trailing ", "u/~tilde'()*!", "u/&lt;&amp;<>\"", "u/?x=1&y=2#z", "u/.hidden",
      "u/..two", "u/a..b",
    ]
    for (index, key) in keys.enumerated() { try put(store, key, [UInt8(index)]) }
    for (index, key) in keys.enumerated() {
      #expect(try read(store, key) == [UInt8(index)], "\(key)")
      #expect(try store.info(ObjectName(bucket: "keys", key: key), Call()).key == key)
    }
    #expect(try listed(store, "u/") == keys.sorted())
    let deleted = try store.delete(keys, in: "keys", Call())
    #expect(deleted == Set(keys))
    // SeaweedFS shows the folder itself for a while.
    #expect(try listed(store, "u/").allSatisfy { $0 == "u/" })
  }

  @Test func doubleSlashesStayWhereTheServerKeepsThem() throws {
    let fixture = try S3Fixture(.moto)
    try fixture.createBucket("keys")
    let store = fixture.writable
    for key in ["a//b", "a/b", "/x", "a//"] as [ByteString] { try put(store, key, [1]) }
    let page = try store.list(ListRequest(bucket: "keys", prefix: "", delimited: false), Call())
    #expect(page.objects.map(\.key) == ["/x", "a//", "a//b", "a/b"])
  }

  @Test(arguments: servers) func keysThatCannotBeAreRefusedUnsent(_ kind: S3Server.Kind) throws {
    let fixture = try S3Fixture(kind)
    try fixture.createBucket("keys")
    let store = fixture.writable
    let sent = fixture.client.counters.requests
    for key in [
      "", "a/../b", "./a", "a/.", ByteString([0x61, 0xFF]), ByteString([0x61, 0]),
      ByteString([UInt8](repeating: 0x61, count: 1025)),
    ] as [ByteString] {
      #expect(!store.allows(key), "\(key)")
      do {
        try put(store, key, [1])
        Issue.record("\(key) was taken")
      } catch let error as StoreError {
        #expect(error.kind == .keyRefused)
      }
    }
    #expect(store.allows("ü/灯/%2F//+"))
    #expect(fixture.client.counters.requests == sent)
  }
}
