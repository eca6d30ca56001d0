import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import FileCache

/// Downloads that wait for a connection or a thread while others get somewhere.
@Suite struct DownloadTurnTests {
  let fixture: CacheFixture
  let name = object("k")

  init() throws {
    fixture = try CacheFixture(scripted: true)
  }

  @Test func aReaderWaitsAsLongAsItsTransferWaitsForATurn() throws {
    var random = SeededGenerator(seed: 7)
    let version = Version(random.bytes(1000))
    fixture.script.play(afterItsTurn(version))
    let cache = try fixture.cache()
    #expect(try cache.contents(name, Call(timeout: .seconds(2))) == version.bytes)
  }

  @Test func aReaderWaitsForAThreadAsLongAsOtherDownloadsGetSomewhere() throws {
    var random = SeededGenerator(seed: 7)
    let version = Version(random.bytes(1000))
    let weir = Weir()
    fixture.script.play(version.answer { weir.pass($0) })
    let cache = try fixture.cache()
    // As many as there are threads.
    var files: [OpenFile] = []
    for number in 0..<64 {
      files.append(try cache.open(object(ByteString("\(number)")), Call()))
    }
    let line = try Platform.Thread(name: "line") {
      for _ in 0..<300 {
        usleep(10_000)
        cache.signs.withLock { $0 += 1 }
      }
      weir.open(to: .max)
    }
    #expect(try cache.contents(name, Call(timeout: .seconds(2))) == version.bytes)
    line.join()
    for file in files { file.close() }
  }
}
