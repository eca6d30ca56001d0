import BucketStore
@testable import FileCache
import Platform
import TestSupport
import Testing

@Suite struct WriterDigestTests {
  let fixture: CacheFixture
  let name = object("k")
  let bytes: [UInt8]

  init() throws {
    fixture = try CacheFixture { $0.partSize = 65_536 }
    var random = SeededGenerator(seed: 8)
    bytes = random.bytes(50_000)
  }

  private func put(_ bytes: [UInt8], digest: String) {
    fixture.store.put("b", "k", bytes, userMetadata: ["sha256": digest])
    fixture.store.describe("b", "k") { $0.tag = "\"several-2\"" }
  }

  @Test func bytesThatDoNotMatchWhatTheWriterLeftAreFetchedOnceMore() throws {
    put(bytes, digest: Digest.hex(.sha256, of: bytes).uppercased())
    fixture.store.inject(.flip, on: .get)
    let cache = try fixture.cache()
    #expect(try cache.contents(name) == bytes)
    #expect(fixture.gets == 2)
    #expect(eventually { cache.state.withLock { $0.copies[name]?.isVerified } == true })
  }

  @Test(arguments: [50_000, 300_000])
  func bytesThatNeverMatchItAreAnError(_ size: Int) throws {
    var random = SeededGenerator(seed: 9)
    let bytes = random.bytes(size)
    put(bytes, digest: Digest.hex(.sha256, of: Array(bytes.reversed())))
    let cache = try fixture.cache()
    let error = #expect(throws: StoreError.self) { try cache.contents(name) }
    #expect(error?.kind == .damaged)
    #expect(files(below: fixture.path("storage")).isEmpty)
  }

  @Test(arguments: ["unknown", "another version", "no digest"])
  func whatTheStoreDoesNotSayIsNotCompared(_ how: String) throws {
    put(bytes, digest: how == "no digest" ? "none" : String(repeating: "0", count: 64))
    switch how {
    case "unknown": fixture.store.inject(.fail(StoreError(.server, "down")), on: .info)
    case "another version":
      // The facts are asked for after the bytes, and may be those of a later version.
      let gate = Gate()
      fixture.store.inject(.wait(gate), on: .info)
      let cache = try fixture.cache()
      let file = try cache.open(name, Call())
      gate.awaitArrivals(1)
      fixture.store.describe("b", "k") { $0.tag = "\"other-2\"" }
      gate.open()
      #expect(try file.readAll() == bytes)
      return
    default: break
    }
    #expect(try fixture.cache().contents(name) == bytes)
  }

  @Test func closingDoesNotWaitForTheFacts() throws {
    put(bytes, digest: Digest.hex(.sha256, of: bytes))
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .info)
    let file = try fixture.cache().open(name, Call())
    gate.awaitArrivals(1)
    let start = Instant.now
    fixture.close()
    #expect(Instant.now.since(start) < .seconds(5))
    gate.open()
    withExtendedLifetime(file) {}
  }
}
