import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// Files that another writer has stored, changed or deleted meanwhile: both contents are kept.
@Suite struct ConflictTests {
  private let fixture: QueueFixture

  init() throws {
    fixture = try QueueFixture()
  }

  /// The keys of the store and of the queue that are conflict copies of a key.
  private func copies(_ fixture: QueueFixture, of stem: ByteString) -> [ByteString] {
    let pending = fixture.queue.entries.map(\.object.key)
    return (Set(pending).union(fixture.store.keys("photos"))).filter {
      $0.hasPrefix(stem + " (conflict ")
    }.sorted()
  }

  private func store(_ key: ByteString, _ bytes: [UInt8]) -> PendingBase {
    let info = fixture.store.put("photos", key, bytes)
    return .object(version: info.version, tag: info.tag)
  }

  @Test(arguments: [true, false])
  func newHereAndNewThereAreBothKept(_ isAtomic: Bool) throws {
    fixture.store.writing = WritingCapabilities(
      atomicCreate: isAtomic, atomicReplace: isAtomic, resumable: nil)
    try fixture.add("d/a.txt", [1, 2])
    fixture.store.put("photos", "d/a.txt", [9])
    fixture.drain()
    let copy = try #require(copies(fixture, of: "d/a").first)
    #expect(copy.hasSuffix(").txt"))
    #expect(fixture.store.keys("photos") == ["d/a.txt", copy])
    #expect(fixture.store.bytes("photos", "d/a.txt") == [9])
    #expect(fixture.store.bytes("photos", copy) == [1, 2])
    #expect(fixture.queue.wait(until: nil, Cancellation()) == .stored)
    #expect(try fixture.kept == ["conflicts.json"])
    #expect(fixture.receiver.elsewhere[fixture.name("d/a.txt")]?.tag != nil)
    #expect(fixture.receiver.bytes(fixture.name(copy)) == [1, 2])
    #expect(fixture.queue.conflicts.map(\.copy) == [fixture.name(copy)])
  }

  /// Some stores turn a write away while another one of the same name, be it ours, is under way.
  @Test func aStoreThatIsBusyWithTheObjectIsNoOtherWriter() throws {
    let base = store("a", [0])
    try fixture.add("a", [1, 2], base: base)
    for _ in 0..<2 {
      fixture.store.inject(.fail(StoreError(.conflict, "under way")), on: .put)
    }
    fixture.drain()
    #expect(copies(fixture, of: "a").isEmpty)
    let record = try #require(fixture.entry("a")?.record)
    #expect(record.state == .waiting)
    #expect(record.failure?.isRetryable == true)
    fixture.now = try #require(record.nextTry) + .seconds(2)
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1, 2])
    #expect(fixture.store.keys("photos") == ["a"])
  }

  /// A listing does not tell that a tag is no digest; the answer about the object does.
  @Test func theTagOfAListingIsThatOfAnEncryptedObject() {
    let listed = PendingBase.object(version: nil, tag: "\"0123456789abcdef0123456789abcdef\"")
    func info(_ tag: String) -> ObjectInfo {
      ObjectInfo(key: "a", size: 1, tag: tag, version: "v", modified: nil)
    }
    #expect(listed.matches(info("\"0123456789abcdef0123456789abcdef-encrypted\"")))
    #expect(!listed.matches(info("\"1123456789abcdef0123456789abcdef-encrypted\"")))
  }

  @Test(arguments: [true, false])
  func changedHereAndChangedThereAreBothKept(_ isAtomic: Bool) throws {
    fixture.store.writing = WritingCapabilities(
      atomicCreate: isAtomic, atomicReplace: isAtomic, resumable: nil)
    let base = store("a", [0])
    try fixture.add("a", [1, 2], base: base)
    fixture.store.put("photos", "a", [9])
    fixture.drain()
    let copy = try #require(copies(fixture, of: "a").first)
    #expect(fixture.store.keys("photos") == ["a", copy])
    #expect(fixture.store.bytes("photos", "a") == [9])
    #expect(fixture.store.bytes("photos", copy) == [1, 2])
  }

  @Test func bothShowWhileOursStillWaits() throws {
    let base = store("a", [0])
    try fixture.add("a", [1, 2], base: base)
    fixture.store.put("photos", "a", [9])
    fixture.commit()
    _ = fixture.queue.step()
    let copy = try #require(copies(fixture, of: "a").first)
    #expect(fixture.entry("a") == nil)
    #expect(!fixture.queue.isDeleted(fixture.name("a")))
    let entry = try #require(fixture.entry(copy))
    #expect(entry.state == .waiting)
    #expect(entry.record.conflictOf == fixture.name("a"))
    #expect(entry.record.failure == nil)
    #expect(try fixture.bytes(copy) == [1, 2])
    let after = try fixture.afterKill()
    #expect(after.entry("a") == nil)
    #expect(after.entry(copy)?.record == entry.record)
    #expect(after.queue.conflicts.map(\.object) == [fixture.name("a")])
    after.drain()
    #expect(after.store.keys("photos") == ["a", copy])
  }

  @Test func theSameBytesOnBothSidesAreNoConflict() throws {
    try fixture.add("a", [1, 2], base: store("a", [0]))
    try fixture.add("b", [3])
    fixture.store.put("photos", "a", [1, 2])
    fixture.store.put("photos", "b", [3])
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a", "b"])
    #expect(fixture.queue.entries.isEmpty)
    #expect(fixture.queue.conflicts.isEmpty)
  }

  @Test func whatWasDeletedThereAndChangedHereIsStoredAgain() throws {
    try fixture.add("a", [1, 2], base: store("a", [0]))
    fixture.store.remove("photos", "a")
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a"])
    #expect(fixture.store.bytes("photos", "a") == [1, 2])
    #expect(fixture.queue.conflicts.isEmpty)
  }

  @Test func whatWasInTheWayAndHasGoneAgainIsNoConflict() throws {
    try fixture.add("a", [1, 2])
    fixture.store.inject(.fail(StoreError(.exists, "there is one")), on: .put)
    let until = try #require(fixture.drain())
    fixture.now = until
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a"])
    #expect(fixture.queue.conflicts.isEmpty)
  }

  @Test func twoWritersWhoMakeOneFolderMakeOne() throws {
    try fixture.add("d/.emptyFolderPlaceholder", [])
    fixture.store.put("photos", "d/.emptyFolderPlaceholder", [1])
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["d/.emptyFolderPlaceholder"])
    #expect(fixture.queue.entries.isEmpty)
    #expect(fixture.receiver.taken.map(\.object.key) == ["d/.emptyFolderPlaceholder"])
  }

  @Test func aCopysNameThatIsTakenGetsANumber() throws {
    for round in 1...3 {
      let base = store("a.txt", [UInt8(round)])
      try fixture.add("a.txt", [10, UInt8(round)], base: base)
      fixture.store.put("photos", "a.txt", [9, UInt8(round)])
      if round == 3 {
        // Neither may the queue have it.
        let first = try #require(copies(fixture, of: "a").last)
        try fixture.add(ByteString(Array(first.bytes.dropLast(5)) + Array(" 3).txt".utf8)), [7])
      }
      fixture.drain()
    }
    let names = copies(fixture, of: "a")
    #expect(names.count == 5 - 1)
    for ending in [" 2).txt", " 3).txt", " 4).txt"] as [ByteString] {
      #expect(names.contains { $0.hasSuffix(ending) }, "\(names)")
    }
    #expect(
      Set(names.compactMap { fixture.store.bytes("photos", $0) })
        == [[10, 1], [10, 2], [10, 3], [7]])
  }

  @Test func twoFilesThatAreSetAsideAtOnceNeverGetOneName() throws {
    // What tells them apart is cut off to make room for the mark.
    let stem = ByteString(String(repeating: "x", count: 245))
    let keys = [stem + "-1.jpg", stem + "-2.jpg"]
    for (key, byte) in zip(keys, [1, 2] as [UInt8]) {
      try fixture.add(key, [byte], base: store(key, [0]))
      fixture.store.put("photos", key, [9])
    }
    let gate = Gate()
    fixture.commit()
    fixture.queue.directory.journal.withLock { journal in
      journal = { operation in
        guard case .syncFile(let name) = operation, name.hasSuffix(".json.new") else { return }
        gate.pass()
      }
    }
    let queue = fixture.queue
    let senders = try (0..<2).map { _ in
      try Platform.Thread(name: "sender") { _ = queue.step() }
    }
    gate.awaitArrivals(2)
    gate.open()
    for sender in senders { #expect(sender.join(until: .now + .seconds(30))) }
    let names = fixture.queue.entries.map(\.object.key)
    #expect(Set(names).count == 2, "\(names)")
    let after = try fixture.afterKill()
    after.drain()
    let copies = after.store.keys("photos").subtracting(keys)
    #expect(Set(copies.compactMap { after.store.bytes("photos", $0) }) == [[1], [2]])
  }

  @Test func aNameThatAFileIsJustSetAsideAsIsNotGivenToAnother() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    fixture.store.put("photos", "a", [9])
    try fixture.add("mine", [5])
    fixture.commit()
    let gate = Gate()
    fixture.queue.directory.journal.withLock { journal in
      journal = { operation in
        guard case .syncFile(let name) = operation, name.hasSuffix(".json.new") else { return }
        gate.pass()
      }
    }
    let queue = fixture.queue
    let sender = try Platform.Thread(name: "sender") { _ = queue.step() }
    gate.awaitArrivals(1)
    let copy = try #require(
      queue.options.conflictNames.name(
        beside: fixture.name("a"), number: 1, at: fixture.now, allows: { _ in true }))
    #expect(throws: Errno.busy) { _ = try queue.create(copy, NewFile(base: .absent)) }
    #expect(throws: Errno.busy) {
      try queue.rename(fixture.name("mine"), to: copy, base: .absent)
    }
    gate.open()
    #expect(sender.join(until: .now + .seconds(30)))
    #expect(try fixture.bytes(copy.key) == [1])
    #expect(try fixture.bytes("mine") == [5])
    // From then on it is a file like any other.
    try fixture.queue.rename(fixture.name("mine"), to: copy, base: .absent)
    #expect(try fixture.bytes(copy.key) == [5])
  }

  @Test func conflictsFoundAtOnceAreAllKeptInMind() throws {
    let directory = fixture.queue.directory
    let now = fixture.now
    let object = fixture.name("a")
    let log = ConflictLog(directory)
    _ = try inParallel(4) { thread in
      for number in 0..<20 {
        log.add(
          ConflictCopy(
            at: now, object: object,
            copy: ObjectName(bucket: "photos", key: ByteString("\(thread)-\(number)")),
            owner: "anna"))
      }
    }
    let kept = ConflictLog(directory).copies(of: "anna", since: now)
    #expect(Set(kept.map(\.copy)).count == 80)
  }

  @Test func aNameThatAnotherWriterTakesInThatMomentIsNotOverwritten() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    fixture.store.put("photos", "a", [9])
    fixture.commit()
    _ = fixture.queue.step()
    let copy = try #require(copies(fixture, of: "a").first)
    fixture.store.put("photos", copy, [8])
    fixture.drain()
    #expect(fixture.store.bytes("photos", copy) == [8])
    let names = copies(fixture, of: "a")
    #expect(names.count == 2)
    #expect(names.allSatisfy { !$0.hasSuffix(") (conflict") })
    #expect(Set(names.compactMap { fixture.store.bytes("photos", $0) }) == [[8], [1]])
  }

  @Test func aLostAnswerMakesNoSecondCopy() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    fixture.store.put("photos", "a", [9])
    fixture.commit()
    _ = fixture.queue.step()
    fixture.store.inject(.loseAnswer(StoreError(.connectivity, "cut")), on: .put)
    while let until = fixture.drain() { fixture.now = until }
    let names = copies(fixture, of: "a")
    #expect(names.count == 1)
    #expect(fixture.store.keys("photos").count == 2)
    #expect(fixture.queue.entries.isEmpty)
    #expect(fixture.queue.conflicts.count == 1)
  }

  @Test func whatIsReadGoesOnBeingRead() throws {
    try fixture.add("a", [1, 2, 3], base: store("a", [0]))
    let file = try #require(try fixture.queue.open(fixture.name("a")))
    fixture.store.put("photos", "a", [9])
    fixture.drain()
    #expect(copies(fixture, of: "a").count == 1)
    #expect(try QueueFixture.read(file) == [1, 2, 3])
    file.close()
  }

  @Test func whatIsWrittenAgainMeanwhileIsSetAsideOnceWithTheNewestBytes() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .info)
    let sender = try fixture.sendInBackground()
    gate.awaitArrivals(1)
    let file = try fixture.queue.edit(fixture.name("a"))
    fixture.store.put("photos", "a", [9])
    gate.open()
    #expect(sender.join(until: .now + .seconds(30)))
    #expect(copies(fixture, of: "a").isEmpty, "its writer is not done")
    #expect(fixture.drain() == nil)
    try fixture.write(file, [1, 2, 3])
    try fixture.queue.set(PendingAttributes(mode: 0o600), of: fixture.name("a"))
    file.close()
    fixture.drain()
    let copy = try #require(copies(fixture, of: "a").first)
    #expect(fixture.store.keys("photos") == ["a", copy])
    #expect(fixture.store.bytes("photos", "a") == [9])
    #expect(fixture.store.bytes("photos", copy) == [1, 2, 3])
  }

  @Test func whatIsReplacedWhileItIsSetAsideIsSetAsideOnce() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .info)
    let sender = try fixture.sendInBackground()
    gate.awaitArrivals(1)
    fixture.store.put("photos", "a", [9])
    try fixture.add("a", [2])
    gate.open()
    #expect(sender.join(until: .now + .seconds(30)))
    fixture.drain()
    let copy = try #require(copies(fixture, of: "a").first)
    #expect(fixture.store.keys("photos") == ["a", copy])
    #expect(fixture.store.bytes("photos", copy) == [2])
  }

  @Test func aCopyCanBeGivenAnotherNameAndItsOldOneUsed() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    fixture.store.put("photos", "a", [9])
    fixture.commit()
    _ = fixture.queue.step()
    let copy = try #require(copies(fixture, of: "a").first)
    try fixture.queue.rename(fixture.name(copy), to: fixture.name("mine"), base: .absent)
    #expect(fixture.entry("mine")?.record.conflictOf == nil)
    try fixture.add(
      "a", [7], base: .object(version: fixture.store.facts("photos", "a")?.version, tag: nil))
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a", "mine"])
    #expect(fixture.store.bytes("photos", "mine") == [1])
    #expect(fixture.store.bytes("photos", "a") == [7])
  }

  @Test func aCopyThatIsRemovedIsGoneAndTheirsStays() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    fixture.store.put("photos", "a", [9])
    fixture.commit()
    _ = fixture.queue.step()
    let copy = try #require(copies(fixture, of: "a").first)
    try fixture.queue.remove(fixture.name(copy))
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["a"])
    #expect(fixture.store.bytes("photos", "a") == [9])
    #expect(fixture.queue.entries.isEmpty)
  }

  @Test func theResumableUploadOfTheOldNameIsGivenUp() throws {
    fixture.store.writing = WritingCapabilities(
      atomicCreate: true, atomicReplace: false, resumable: 4)
    try fixture.add("a", [1, 2, 3, 4, 5, 6], base: store("a", [0]))
    fixture.store.inject(.cut(after: 3), on: .continueUpload)
    fixture.drain()
    #expect(fixture.store.openUploads.count == 1)
    fixture.store.put("photos", "a", [9])
    while let until = fixture.drain() { fixture.now = until }
    let copy = try #require(copies(fixture, of: "a").first)
    #expect(fixture.store.bytes("photos", copy) == [1, 2, 3, 4, 5, 6])
    #expect(fixture.store.bytes("photos", "a") == [9])
    #expect(fixture.store.openUploads.isEmpty)
  }

  @Test func onlyTheNewsOfTheLastMonthAreKept() throws {
    try fixture.add("a", [1], base: store("a", [0]))
    fixture.store.put("photos", "a", [9])
    fixture.drain()
    try fixture.reopen()
    #expect(fixture.queue.conflicts.count == 1)
    fixture.now = fixture.now + .seconds(31 * 86_400)
    #expect(fixture.queue.conflicts.isEmpty)
    let news = try File("\(fixture.folder)/conflicts.json", O_WRONLY | O_TRUNC)
    try [UInt8]([1, 2]).withUnsafeBufferPointer { (buffer) throws(Errno) in
      try news.write(UnsafeRawBufferPointer(buffer), at: 0)
    }
    try fixture.reopen()
    #expect(fixture.queue.conflicts.isEmpty)
  }
}

/// What conflict copies are called.
@Suite struct ConflictNameTests {
  private static let time = Timestamp(seconds: 1_800_000_000)

  private func name(
    _ key: ByteString, _ number: Int = 1, host: String = "desk", encoding: KeyEncoding? = nil,
    allows: (ByteString) -> Bool = { _ in true }
  ) -> ByteString? {
    ConflictNames(host: host, encoding: encoding).name(
      beside: ObjectName(bucket: "b", key: key), number: number, at: Self.time, allows: allows)?.key
  }

  /// A pattern with the date in it as `*`.
  private func expect(_ key: ByteString?, _ pattern: String) {
    let text = key?.string ?? "nothing"
    let parts = pattern.split(separator: "*", omittingEmptySubsequences: false).map(String.init)
    #expect(text.hasPrefix(parts[0]) && text.hasSuffix(parts[1]), "\(text)")
    let date = text.dropFirst(parts[0].count).dropLast(parts[1].count)
    let shape = String(date.map { $0.isNumber ? "0" : $0 })
    #expect(shape == "0000-00-00 00.00", "\(text)")
    #expect(date.hasPrefix("2027-01-1"))
  }

  @Test(arguments: [
    ("a.txt", "a (conflict * desk).txt"), ("d/e.f/a.txt", "d/e.f/a (conflict * desk).txt"),
    ("d.e/a", "d.e/a (conflict * desk)"), (".profile", ".profile (conflict * desk)"),
    (".a.conf", ".a (conflict * desk).conf"), ("a.", "a. (conflict * desk)"),
    ("a.tar.gz", "a.tar (conflict * desk).gz"), ("...", "... (conflict * desk)"),
    ("..a", "..a (conflict * desk)"),
    (
      "a.an ending that is longer than any ending is",
      "a.an ending that is longer than any ending is (conflict * desk)"
    ),
    ("grüße.txt", "grüße (conflict * desk).txt"),
  ])
  func theMarkStandsBeforeTheExtension(_ key: String, _ pattern: String) {
    expect(name(ByteString(key)), pattern)
    expect(name(ByteString(key), 12), pattern.replacing(" desk)", with: " desk 12)"))
  }

  @Test func theHostIsWrittenInLettersThatEveryStoreTakes() {
    expect(name("a", host: "Jo's Mac_Book-1.local"), "a (conflict * JosMacBook-1local)")
    expect(name("a", host: "ü"), "a (conflict * device)")
    expect(
      name("a", host: String(repeating: "x", count: 99)),
      "a (conflict * \(String(repeating: "x", count: 20)))")
    let here = ConflictNames().host
    #expect(!here.isEmpty)
    #expect(here.utf8.allSatisfy { KeyEncoding.isTaken($0) })
  }

  @Test(arguments: [KeyEncoding?.none, .encode]) func aLongNameLosesWholeCharacters(
    _ encoding: KeyEncoding?
  ) throws {
    for letter in ["x", "ü", "€", "😀"] {
      for count in 1...255 / letter.utf8.count {
        let long = ByteString(String(repeating: letter, count: count) + ".txt")
        guard long.count <= 255 else { continue }
        let key = try #require(encoding.map { $0.encode(long) } ?? long)
        let copy = try #require(name("d/" + key, encoding: encoding)).dropFirst(2)
        let shown = encoding?.decode(copy) ?? copy
        let text = try #require(shown.string, "\(shown)")
        #expect(shown.count <= 255 && text.hasSuffix("desk).txt"))
        #expect(shown.count > 250 || text.hasPrefix(String(repeating: letter, count: count) + " ("))
      }
    }
  }

  @Test func aKeyThatIsTooLongForTheStoreIsMadeShorter() throws {
    let key = ByteString(String(repeating: "x", count: 100))
    let copy = try #require(name(key) { $0.count <= 60 })
    #expect(copy.count == 60)
    #expect(name("a") { $0.count <= 20 } == nil)
  }

  @Test func everyStoreTakesTheName() throws {
    for name in ["ü", "a=b", "=C3", "日本.txt"] as [ByteString] {
      let key = try #require(KeyEncoding.encode.encode(name))
      let copy = try #require(self.name(key, encoding: .encode))
      #expect(copy.bytes.allSatisfy(KeyEncoding.isTaken))
      #expect(KeyEncoding.encode.encode(KeyEncoding.encode.decode(copy)) == copy)
    }
  }
}
