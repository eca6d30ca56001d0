import BucketStore
@testable import FileCache
import Foundation
import Platform
import TestSupport
import Testing

@Suite struct DownloadTests {
  let fixture: CacheFixture
  let name = object("k")

  init() throws {
    fixture = try CacheFixture(scripted: true)
  }

  private func random(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return random.bytes(count)
  }

  @Test func anOpenReturnsBeforeTheBytesAndAReadWaitsForItsRangeAlone() throws {
    let bytes = random(2_000_000)
    let weir = Weir()
    fixture.script.play(Version(bytes).answer { weir.pass($0) })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    #expect(file.size == 2_000_000)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100_000, alignment: 16)
    defer { buffer.deallocate() }
    #expect(try file.readAvailable(buffer, at: 0) == nil)
    weir.open(to: 500_000)
    #expect(try file.readBytes(100_000, at: 300_000) == Array(bytes[300_000..<400_000]))
    #expect(eventually { (try? file.readAvailable(buffer, at: 0)) == 100_000 })
    #expect(try file.readAvailable(buffer, at: 600_000) == nil)
    weir.open(to: .max)
    #expect(try file.readAll() == bytes)
    #expect(fixture.script.requests.count == 1)
  }

  @Test func bytesOfAnObjectThatWasWrittenWhileItWasReadAreNeitherServedNorKept() throws {
    let bytes = random(300_000)
    let version = Version(bytes, tag: "\"one\"")
    let weir = Weir()
    fixture.script.play(
      version.answer(failure: StoreError(.conflict, "was written while it was read")) {
        weir.pass($0)
      },
      Version(random(300_000), tag: "\"two\"").answer())
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    weir.open(to: .max)
    do throws(StoreError) {
      _ = try file.readAll()
      // All of it may be read before the store says so; then it was handed out, but is not kept.
    } catch {
      #expect(error.kind == .damaged)
    }
    file.close()
    #expect(eventually { fixture.script.requests.count == 1 && cache.copy(of: name) == nil })
    _ = try cache.ensure(name, Call())
    #expect(cache.copy(of: name)?.info.tag == "\"two\"")
  }

  @Test func anInterruptedReadEndsWhileTheDownloadGoesOn() throws {
    let bytes = random(1_000_000)
    let weir = Weir()
    fixture.script.play(Version(bytes).answer { weir.pass($0) })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    let cancellation = Cancellation()
    let thread = try Platform.Thread(name: "reader") {
      do throws(StoreError) {
        _ = try file.readBytes(10, at: 0, Call(cancellation: cancellation))
        Issue.record("it was cancelled")
      } catch {
        #expect(error.kind == .cancelled)
      }
    }
    usleep(50_000)
    cancellation.cancel()
    #expect(thread.join(until: .now + .seconds(5)))
    weir.open(to: .max)
    #expect(try file.readAll() == bytes)
  }

  @Test func aHundredReadersShareOneDownload() throws {
    let bytes = random(1_500_000)
    let weir = Weir()
    fixture.script.play(Version(bytes).answer { weir.pass($0) })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    let right = Locked(0)
    let threads = try (0..<100).map { index in
      try Platform.Thread(name: "reader") {
        do throws(StoreError) {
          let bytesRead = try file.readAll(piece: 50_000 + index * 1000)
          if bytesRead == bytes { right.withLock { $0 += 1 } }
        } catch {
          Issue.record(error)
        }
      }
    }
    for step in 1...15 {
      weir.open(to: Int64(step) * 100_000)
      usleep(2000)
    }
    weir.open(to: .max)
    for thread in threads { #expect(thread.join(until: .now + .seconds(30))) }
    #expect(right.withLock { $0 } == 100)
    #expect(fixture.script.requests.count == 1)
  }

  @Test func bytesThatDoNotMatchTheChecksumAreFetchedOnceMore() throws {
    let good = Version(random(5000))
    var bad = good
    bad.bytes[4999] ^= 1
    fixture.script.play(bad.answer(), good.answer())
    let cache = try fixture.cache()
    #expect(try cache.contents(name) == good.bytes)
    #expect(fixture.script.requests.count == 2)
    #expect(fixture.script.requests.last?.fresh == good.tag, "past any cache in between")
    _ = try cache.ensure(name, Call())
    #expect(fixture.contents("storage/b/k") == good.bytes)
  }

  @Test func bytesThatNeverMatchAreAnErrorAndNeverACopy() throws {
    let good = Version(random(5000))
    var bad = good
    bad.bytes[0] ^= 1
    fixture.script.play(bad.answer())
    let cache = try fixture.cache()
    let error = #expect(throws: StoreError.self) { try cache.contents(name) }
    #expect(error?.kind == .damaged)
    #expect(fixture.script.requests.count == 2)
    #expect(files(below: fixture.path("storage")).isEmpty)
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
    fixture.script.play(good.answer())
    #expect(try cache.contents(name) == good.bytes, "the next open asks again")
  }

  @Test func theEndOfAStreamIsWithheldUntilTheChecksumWasCompared() throws {
    var bad = Version(random(400_000))
    bad.bytes[399_999] ^= 1
    let weir = Weir()
    fixture.script.play(bad.answer { weir.pass($0) })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    weir.open(to: 390_000)
    #expect(try file.readBytes(1000, at: 200_000) == Array(bad.bytes[200_000..<201_000]))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 10, alignment: 16)
    defer { buffer.deallocate() }
    #expect(try file.readAvailable(buffer, at: 300_000) == nil)
    weir.open(to: .max)
    let error = #expect(throws: StoreError.self) { try file.readBytes(10, at: 300_000) }
    #expect(error?.kind == .damaged)
  }

  @Test func whoWasGivenWrongBytesGetsAnErrorWhileOthersGetTheRightOnes() throws {
    let good = Version(random(400_000))
    var bad = good
    bad.bytes[10] ^= 1
    let weir = Weir()
    fixture.script.play(bad.answer { weir.pass($0) }, good.answer())
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    weir.open(to: 300_000)
    #expect(try file.readBytes(100, at: 0) != Array(good.bytes[..<100]))
    weir.open(to: .max)
    let error = #expect(throws: StoreError.self) { try file.readBytes(100, at: 399_900) }
    #expect(error?.kind == .damaged)
    let again = try cache.open(name, Call())
    #expect(try again.readAll() == good.bytes)
    #expect(again.version != file.version, "the kernel must not keep the pages")
  }

  enum Ending: CaseIterable {
    case damagedAgain, failed, closed
  }

  @Test(arguments: Ending.allCases)
  func bytesKeptToCompareWithGoWhereverTheDownloadEnds(_ ending: Ending) throws {
    let good = Version(random(400_000))
    var bad = good
    bad.bytes[10] ^= 1
    let weir = Weir()
    let second = Weir()
    fixture.script.play(
      bad.answer { weir.pass($0) },
      ending == .damagedAgain
        ? bad.answer() : good.answer(cut: 100_000) { second.pass($0) }, failure(.server))
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    weir.open(to: 300_000)
    _ = try file.readBytes(100, at: 0)
    weir.open(to: .max)
    #expect(eventually { fixture.script.requests.count >= 2 })
    switch ending {
    case .damagedAgain, .failed:
      second.open(to: .max)
      #expect(throws: StoreError.self) { try file.readBytes(100, at: 399_900) }
      file.close()
    case .closed:
      #expect(files(below: fixture.path("tmp")).count == 2)
      second.open(to: .max)
      fixture.close()
    }
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
  }

  @Test func bytesThatAreBeingCheckedCountAsProgress() throws {
    let version = Version(random(400_000))
    let weir = Weir()
    fixture.script.play(version.answer { weir.pass($0) })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    let download = try #require(cache.state.withLock { $0.downloads[name] })
    weir.open(to: .max)
    #expect(try file.readAll() == version.bytes)
    #expect(download.state.withLock { $0.received } == 800_000)
  }

  @Test func whoWasGivenRightBytesReadsOnAfterTheSecondDownload() throws {
    let good = Version(random(400_000))
    var bad = good
    bad.bytes[399_000] ^= 1
    let weir = Weir()
    fixture.script.play(bad.answer { weir.pass($0) }, good.answer())
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    weir.open(to: 300_000)
    #expect(try file.readBytes(100, at: 0) == Array(good.bytes[..<100]))
    weir.open(to: .max)
    #expect(try file.readAll() == good.bytes)
  }

  @Test func aTagThatIsNoChecksumIsNotTakenForOne() throws {
    let hash = String(repeating: "a", count: 32)
    for tag in ["\"\(hash)-2\"", hash, "\"\(String(repeating: "z", count: 32))\"", "\"17-3e8\""] {
      let fixture = try CacheFixture(scripted: true)
      let version = Version(random(1000), tag: tag)
      fixture.script.play(version.answer())
      #expect(try fixture.cache().contents(name) == version.bytes, "\(tag)")
      #expect(fixture.script.requests.count == 1)
    }
  }

  @Test func aBodyLongerThanItsHeadSaysIsNeverServed() throws {
    var version = Version(random(1000), tag: "\"x-2\"")
    version.announced = 600
    version.bytes += random(400)
    fixture.script.play(version.answer())
    let cache = try fixture.cache()
    #expect(throws: StoreError.self) { try cache.contents(name) }
    #expect(files(below: fixture.path("storage")).isEmpty)
  }

  @Test func aBodyShorterThanItsHeadSaysIsNeverACopy() throws {
    var version = Version(random(1000), tag: "\"x-2\"")
    version.announced = 1600
    fixture.script.play(version.answer())
    let cache = try fixture.cache()
    #expect(throws: StoreError.self) { try cache.contents(name) }
    #expect(files(below: fixture.path("storage")).isEmpty)
  }

  @Test func anObjectOfUnknownLengthIsOpenedOnceItIsWhole() throws {
    var version = Version(random(200_000), tag: "\"x-2\"")
    version.announced = nil
    fixture.script.play(version.answer())
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    #expect(file.size == 200_000)
    #expect(try file.readAll() == version.bytes)
    fixture.script.play(version.answer(cut: 1000))
    let error = #expect(throws: StoreError.self) { try cache.open(object("other"), Call()) }
    #expect(error?.kind == .connectivity)
  }

  @Test func anEmptyObjectIsACopyToo() throws {
    fixture.script.play(Version([]).answer())
    let cache = try fixture.cache()
    #expect(try cache.contents(name) == [])
    #expect(try cache.ensure(name, Call()).info.size == 0)
    #expect(fixture.contents("storage/b/k") == [])
  }

  @Test func notModifiedWithoutAQuestionIsNoAnswer() throws {
    fixture.script.play(notModified())
    let error = #expect(throws: StoreError.self) { try fixture.cache().contents(name) }
    #expect(error?.kind == .server)
  }

  @Test func aStoreThatIgnoresTheConditionIsNotReadAgain() throws {
    let version = Version(random(1_000_000))
    fixture.script.play(version.answer())
    let cache = try fixture.cache()
    let first = try cache.ensure(name, Call())
    let asked = Locked(0)
    fixture.script.play(
      version.answer(ignoresCondition: true) { _ in asked.withLock { $0 += 1 } })
    #expect(try cache.contents(name) == version.bytes)
    #expect(asked.withLock { $0 } == 0, "no byte was taken")
    #expect(try cache.ensure(name, Call()).fetched == first.fetched)
  }

  @Test func headsThatCannotBeAreRefused() throws {
    let heads = [
      ObjectHead(size: -5, range: nil, tag: "\"a\"", modified: nil),
      ObjectHead(size: .max, range: 0..<(.max), tag: "\"a\"", modified: nil),
      ObjectHead(size: 10, range: 0..<20, tag: "\"a\"", modified: nil),
      ObjectHead(size: 10, range: -4..<6, tag: "\"a\"", modified: nil),
      ObjectHead(size: 10, range: 5..<10, tag: "\"a\"", modified: nil),
    ]
    let cache = try fixture.cache()
    for head in heads {
      fixture.script.play(headAlone(head))
      let error = #expect(throws: StoreError.self) { try cache.contents(name) }
      #expect(error?.kind == .damaged)
    }
  }

  @Test func anOpenFileKeepsItsVersionWhenTheCopyIsReplacedOrDropped() throws {
    let (old, new) = (Version(random(300_000, seed: 1)), Version(random(200_000, seed: 2)))
    fixture.script.play(old.answer())
    let cache = try fixture.cache()
    _ = try cache.ensure(name, Call())
    let first = try cache.open(name, Call())
    fixture.script.play(new.answer())
    let second = try cache.open(name, Call())
    #expect(try second.readAll() == new.bytes)
    #expect(try first.readAll() == old.bytes)
    #expect(first.size == 300_000 && second.size == 200_000)
    #expect(first.version != second.version)
    cache.drop(name)
    #expect(try first.readAll() == old.bytes)
    #expect(try second.readAll() == new.bytes)
    #expect(cache.copy(of: name) == nil)
    #expect(eventually { files(below: fixture.path("storage")).isEmpty })
  }

  @Test func aDownloadThatWasDroppedMeanwhileBecomesNoCopy() throws {
    let version = Version(random(500_000))
    let weir = Weir()
    fixture.script.play(version.answer { weir.pass($0) })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    cache.drop(name)
    weir.open(to: .max)
    #expect(try file.readAll() == version.bytes)
    file.close()
    #expect(eventually { files(below: fixture.path("tmp")).isEmpty })
    #expect(files(below: fixture.path("storage")).isEmpty)
    #expect(cache.copy(of: name) == nil)
  }

  @Test func aSmallObjectIsFetchedToItsEndWhenItsReaderLeaves() throws {
    let version = Version(random(500_000))
    let weir = Weir()
    fixture.script.play(version.answer { weir.pass($0) })
    let cache = try fixture.cache()
    let file = try cache.open(name, Call())
    file.close()
    weir.open(to: .max)
    #expect(eventually { cache.copy(of: name) != nil })
    #expect(fixture.contents("storage/b/k") == version.bytes)
  }
}
