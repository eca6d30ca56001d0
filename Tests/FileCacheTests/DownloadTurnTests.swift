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

  @Test func theTimeThatACallerHasWaitedElsewhereCounts() throws {
    let silence: ScriptedStore.Answer = { (_, _, call) throws(StoreError) in
      _ = call.cancellation.sleep(until: .now + .seconds(600))
      throw StoreError(.cancelled, "let go")
    }
    fixture.script.play(silence)
    let cache = try fixture.cache()
    let start = Instant.now
    let early = Pulse(Instant(nanoseconds: start.nanoseconds - 601_000_000_000))
    do throws(StoreError) {
      _ = try cache.open(name, Call(timeout: .seconds(600), pulse: early))
      Issue.record("it was opened")
    } catch {
      #expect(error.kind == .timeout)
    }
    #expect(Instant.now.since(start) < .seconds(300))
  }

  @Test func anAnswerGivesTheCallerTimeAnewAndAFailureDoesNot() throws {
    let cache = try fixture.cache()
    let start = Instant(nanoseconds: Instant.now.nanoseconds - 5_000_000_000)
    let failure: ScriptedStore.Answer = { (_, _, _) throws(StoreError) in
      throw StoreError(.offline, "gone")
    }
    fixture.script.play(failure)
    let call = Call(timeout: .seconds(600), pulse: Pulse(start))
    #expect(throws: StoreError(.offline, "gone")) { try cache.open(name, call) }
    #expect(call.waitingSince == start)
    fixture.script.play(Version([1, 2, 3]).answer())
    #expect(try cache.contents(name, call) == [1, 2, 3])
    #expect(call.waitingSince > start)
  }

  @Test func theTimeCountsFromTheLastSignOfLife() throws {
    let oneSign: ScriptedStore.Answer = { (_, sink, call) throws(StoreError) in
      _ = call.cancellation.sleep(until: .now + .milliseconds(500))
      sink.goesOn()
      _ = call.cancellation.sleep(until: .now + .seconds(600))
      throw StoreError(.cancelled, "let go")
    }
    fixture.script.play(oneSign)
    let cache = try fixture.cache()
    let start = Instant.now
    do throws(StoreError) {
      _ = try cache.open(name, Call(timeout: .seconds(8)))
      Issue.record("it was opened")
    } catch {
      #expect(error.kind == .timeout)
    }
    // Looked at once in that time only, it would be 17 s.
    #expect(Instant.now.since(start) < .seconds(15))
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
        cache.lastSign.withLock { $0 = .now }
      }
      weir.open(to: .max)
    }
    #expect(try cache.contents(name, Call(timeout: .seconds(2))) == version.bytes)
    line.join()
    for file in files { file.close() }
  }
}
