import BucketStore
import FileCache
import Platform
import TestSupport
import Testing

/// A cache between the store and us may answer with a version that is no longer the newest.
@Suite struct ListedVersionTests {
  let fixture: CacheFixture
  let name = object("k")
  let old: Version
  let new: Version
  let listed: ListedVersion

  init() throws {
    fixture = try CacheFixture(scripted: true)
    var random = SeededGenerator(seed: 4)
    old = Version(random.bytes(3000))
    var later = Version(random.bytes(4000))
    later.modified = Timestamp(seconds: 1_700_000_100)
    new = later
    listed = ListedVersion(tag: later.tag ?? "", modified: later.modified)
  }

  private func contents() throws -> [UInt8] {
    let file = try fixture.cache().open(name, listed: listed, Call())
    defer { file.close() }
    return try file.readAll()
  }

  @Test func anAnswerOlderThanTheListingIsAskedForOnceMore() throws {
    fixture.script.play(old.answer(), new.answer())
    #expect(try contents() == new.bytes)
    #expect(fixture.script.requests.map(\.fresh) == [nil, new.tag])
  }

  @Test func notModifiedSinceAnOlderVersionIsAskedForOnceMore() throws {
    fixture.script.play(old.answer())
    _ = try fixture.cache().ensure(name, Call())
    fixture.script.play(notModified(), new.answer())
    #expect(try contents() == new.bytes)
    #expect(fixture.script.requests.map(\.fresh) == [nil, new.tag])
    #expect(fixture.script.requests.map(\.unlessTag) == [old.tag, old.tag])
  }

  @Test func whatStaysOldIsServedAsItIs() throws {
    fixture.script.play(old.answer())
    #expect(try contents() == old.bytes)
    #expect(fixture.script.requests.count == 2)
  }

  @Test func anAnswerNewerThanTheListingIsTaken() throws {
    var newest = Version(old.bytes.reversed())
    newest.modified = Timestamp(seconds: 1_700_000_200)
    fixture.script.play(newest.answer())
    #expect(try contents() == newest.bytes)
    #expect(fixture.script.requests.count == 1)
  }

  /// A listing does not tell that a tag is no digest, and the answer with the bytes does.
  @Test func theTagOfAnEncryptedObjectIsThatOfItsListing() throws {
    var answer = old
    answer.tag = new.tag.map { $0.dropLast() + "-encrypted\"" }
    fixture.script.play(answer.answer())
    #expect(try contents() == old.bytes)
    #expect(fixture.script.requests.count == 1)
  }
}
