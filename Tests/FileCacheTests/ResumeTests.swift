import BucketStore
@testable import FileCache
import Foundation
import Platform
import TestSupport
import Testing

@Suite struct ResumeTests {
  let fixture: CacheFixture
  let name = object("k")

  init() throws {
    fixture = try CacheFixture(scripted: true)
  }

  private func random(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return random.bytes(count)
  }

  @Test(arguments: [false, true])
  func aDownloadCutAtAnyPlaceIsResumedWithoutAWrongByte(_ isMD5: Bool) throws {
    let bytes = random(1000)
    let version = isMD5 ? Version(bytes) : Version(bytes, tag: "\"abc-2\"")
    for cut in stride(from: 0, to: 1000, by: 10) {
      let name = object(ByteString("cut/\(cut)"))
      fixture.script.play(version.answer(cut: cut, piece: 37), version.answer())
      let cache = try fixture.cache()
      if cut == 0 {
        // Nothing came: that fails, unless it had failed before anybody read.
        do throws(StoreError) {
          #expect(try cache.contents(name) == bytes)
        } catch {
          #expect(error.kind == .connectivity)
        }
        continue
      }
      #expect(try cache.ensure(name, Call()).info.size == 1000)
      #expect(fixture.contents("storage/b/cut/\(cut)") == bytes)
      #expect(fixture.script.requests.map(\.range) == [nil, Int64(cut)..<1000])
    }
  }

  @Test func aDownloadThatBreaksAgainAndAgainGoesOnAsLongAsItGetsSomewhere() throws {
    let version = Version(random(1000))
    fixture.script.play(version.answer(cut: 100))
    let cache = try fixture.cache()
    #expect(try cache.contents(name) == version.bytes)
    #expect(fixture.script.requests.count == 10)
    fixture.script.play(version.answer(cut: 1, piece: 1))
    #expect(try cache.contents(object("slow")) == version.bytes)
    #expect(fixture.script.requests.count == 1000)
  }

  @Test func aDownloadThatBringsNothingMoreFailsAndLeavesNothing() throws {
    let version = Version(random(1000))
    fixture.script.play(version.answer(cut: 300), version.answer(cut: 0))
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    let error = #expect(throws: StoreError.self) { try file.readAll() }
    #expect(error?.kind == .connectivity)
    fixture.script.play(version.answer())
    #expect(try file.readAll() == version.bytes, "a later read tries again")
    #expect(fixture.script.requests.map(\.range) == [300..<1000])
    file.close()
    fixture.script.play(version.answer(cut: 0))
    #expect(throws: StoreError.self) { try cache.contents(object("other")) }
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
    #expect(!fixture.exists("storage/b/other"))
  }

  @Test func anAnswerCutBeforeItsFirstByteIsAskedForAgain() throws {
    let version = Version(random(1000))
    fixture.script.play(
      version.answer(cut: 300), cutAtOnce(version), cutAtOnce(version), version.answer())
    #expect(try fixture.cache().contents(name) == version.bytes)
    #expect(
      fixture.script.requests.map(\.range) == [nil, 300..<1000, 300..<1000, 300..<1000])
  }

  @Test func answersThatAreAlwaysCutBeforeTheirFirstByteAreAnErrorSoon() throws {
    let version = Version(random(1000))
    fixture.script.play(version.answer(cut: 300), cutAtOnce(version))
    let file = try fixture.cache().open(name, Call())
    let error = #expect(throws: StoreError.self) { try file.readAll() }
    #expect(error?.kind == .damaged)
    #expect(fixture.script.requests.count < 10)
  }

  @Test func partsOfTwoVersionsNeverMix() throws {
    let old = Version(random(400_000, seed: 1), tag: "\"one-2\"")
    let new = Version(random(400_000, seed: 2), tag: "\"two-2\"")
    let weir = Weir()
    fixture.script.play(old.answer(cut: 200_000) { weir.pass($0) }, new.answer())
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    weir.open(to: .max)
    let error = #expect(throws: StoreError.self) { try file.readAll() }
    #expect(error?.kind == .damaged)
    #expect(try file.readBytes(100, at: 0) == Array(old.bytes[..<100]))
    #expect(!fixture.exists("storage/b/k"))
    #expect(try cache.contents(name) == new.bytes)
    file.close()
    _ = try cache.ensure(name, Call())
    #expect(fixture.contents("storage/b/k") == new.bytes)
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
  }

  @Test func anObjectReplacedBeforeAByteOfItWasSeenIsOpenedAnew() throws {
    let old = Version(random(400_000, seed: 1), tag: "\"one-2\"")
    let new = Version(random(300_000, seed: 2), tag: "\"two-2\"")
    for _ in 0..<5 {
      fixture.script.play(old.answer(cut: 200_000), new.answer())
      let cache = try fixture.cache()
      let file = try cache.open(name, Call())
      do throws(StoreError) {
        #expect(try file.readAll() == (file.size == 300_000 ? new.bytes : old.bytes))
      } catch {
        #expect(error.kind == .damaged && file.size == 400_000)
      }
      file.close()
      cache.drop(name)
    }
  }

  @Test func anAnswerWithoutATagDoesNotContinueOneWithATag() throws {
    let old = Version(random(1000), tag: "\"one-2\"")
    var new = old
    new.tag = nil
    let weir = Weir()
    fixture.script.play(old.answer(cut: 500) { weir.pass($0) }, new.answer())
    let file = try fixture.cache().open(name, Call())
    weir.open(to: .max)
    #expect(throws: StoreError.self) { try file.readAll() }
  }

  @Test func withoutTagsTheTimeTellsVersionsApart() throws {
    let version = Version(random(1000), tag: nil)
    fixture.script.play(version.answer(cut: 500), version.answer())
    #expect(try fixture.cache().contents(name) == version.bytes)
    var later = version
    later.modified = Timestamp(seconds: 1_700_000_001)
    let weir = Weir()
    fixture.script.play(version.answer(cut: 500) { weir.pass($0) }, later.answer())
    let file = try fixture.cache().open(object("other"), Call())
    weir.open(to: .max)
    #expect(throws: StoreError.self) { try file.readAll() }
  }

  @Test(arguments: [StoreError.Kind.damaged, .server, .throttled, .connectivity])
  func fewAnswersThatBringNothingAreNoFailure(_ kind: StoreError.Kind) throws {
    let version = Version(random(1000))
    let nothing = version.answer(cut: 0, failure: StoreError(kind, "nothing came"))
    fixture.script.play(
      version.answer(cut: 300), nothing, nothing, nothing, nothing, version.answer())
    #expect(try fixture.cache().contents(name) == version.bytes)
    #expect(fixture.script.requests.count == 6)
  }

  @Test func anotherSilenceIsNotWaitedFor() throws {
    let version = Version(random(1000))
    fixture.script.play(version.answer(cut: 300), failure(.timeout))
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    let download = try #require(cache.state.withLock { $0.downloads[name] })
    #expect(eventually { download.state.withLock { $0.failures } == 1 })
    #expect(fixture.script.requests.count == 2)
    file.close()
  }

  @Test func partsOutliveAnswersThatAreCutBeforeTheirFirstByte() throws {
    fixture.options.partSize = 100_000
    let version = Version(random(1_000_000))
    fixture.script.play(version.answer(), cutAtOnce(version))
    let cache = try fixture.cache()
    let file = try cache.open(name, expected: 1_000_000, Call())
    #expect(try file.readBytes(1000, at: 0) == Array(version.bytes[..<1000]))
    let error = #expect(throws: StoreError.self) { try file.readBytes(1000, at: 900_000) }
    #expect(error?.kind == .damaged)
    file.close()
    #expect(eventually { cache.state.withLock { $0.partials[name] } != nil })
  }
}
