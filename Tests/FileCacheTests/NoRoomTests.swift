import BucketStore
@testable import FileCache
import Foundation
import Platform
import SQLite
import TestSupport
import Testing

@Suite struct NoRoomTests {
  private func version(_ count: Int) -> Version {
    var random = SeededGenerator(seed: 11)
    return Version(random.bytes(count))
  }

  @Test(arguments: [1000, 700_000, 3_000_000])
  func aReadDoesNotFailWhenNoFileCanBeMade(_ size: Int) throws {
    let fixture = try CacheFixture(scripted: true)
    let version = version(size)
    fixture.script.play(version.answer())
    let cache = try fixture.cache()
    try fixture.makeTemporaryFilesImpossible()
    #expect(try cache.contents(object("k")) == version.bytes)
    let error = #expect(throws: StoreError.self) { try cache.ensure(object("k"), Call()) }
    #expect(error?.kind == .noRoom)
    #expect(error?.kind.errno == .noSpace)
  }

  @Test func bytesThatCannotBeKeptAreNotMixedOfTwoVersionsEither() throws {
    let fixture = try CacheFixture(scripted: true)
    let old = version(3_000_000)
    fixture.script.play(old.answer())
    let cache = try fixture.cache()
    try fixture.makeTemporaryFilesImpossible()
    let file = try cache.open(object("k"), Call())
    #expect(try file.readBytes(100, at: 0) == Array(old.bytes[..<100]))
    fixture.script.play(Version(old.bytes.reversed()).answer())
    let error = #expect(throws: StoreError.self) { try file.readBytes(100, at: 2_500_000) }
    #expect(error?.kind == .damaged)
  }

  @Test func aSmallObjectThatCannotBeKeptIsCheckedAllTheSame() throws {
    let fixture = try CacheFixture(scripted: true)
    var bad = version(5000)
    bad.bytes[7] ^= 1
    fixture.script.play(bad.answer())
    let cache = try fixture.cache()
    try fixture.makeTemporaryFilesImpossible()
    let error = #expect(throws: StoreError.self) { try cache.contents(object("k")) }
    #expect(error?.kind == .damaged)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can mount a small file system"))
  func aReadDoesNotFailWhenTheDiskFillsUpMeanwhile() throws {
    let scratch = try Scratch()
    let disk = try scratch.folder("disk")
    try run("/bin/mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", disk)
    defer {
      do { try run("/bin/umount", "-l", disk) } catch { Issue.record(error) }
    }
    let fixture = try CacheFixture(scripted: true) { $0.directory = disk + "/cache" }
    defer { fixture.close() }
    let version = version(6_000_000)
    fixture.script.play(version.answer())
    let cache = try fixture.cache()
    #expect(try cache.contents(object("k")) == version.bytes)
    let small = self.version(100_000)
    fixture.script.play(small.answer())
    #expect(eventually { (try? cache.ensure(object("small"), Call())) != nil }, "room again")
    #expect(try cache.contents(object("small")) == small.bytes)
  }

  /// A cache on a disk of its own, which is full or read-only by the time it is opened.
  private func onSmallDisk(
    _ change: (CacheFixture, _ disk: String) throws -> Void, _ body: (CacheFixture) throws -> Void
  ) throws {
    let scratch = try Scratch()
    let disk = try scratch.folder("disk")
    try run("/bin/mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", disk)
    defer {
      do { try run("/bin/umount", "-l", disk) } catch { Issue.record(error) }
    }
    let fixture = try CacheFixture { $0.directory = disk + "/cache" }
    defer { fixture.close() }
    try change(fixture, disk)
    try body(fixture)
  }

  private func fill(_ disk: String) throws {
    let file = try File(disk + "/ballast", O_WRONLY | O_CREAT)
    let block = [UInt8](repeating: 1, count: 4096)
    var position: Int64 = 0
    while true {
      do throws(Errno) {
        try block.withUnsafeBufferPointer { (bytes) throws(Errno) in
          try file.write(UnsafeRawBufferPointer(bytes), at: position)
        }
      } catch {
        #expect(error == .noSpace)
        return
      }
      position += 4096
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can mount a small file system"))
  func onAFullDiskFilesAreServedAndNothingIsKept() throws {
    let bytes = version(100_000).bytes
    try onSmallDisk { _, disk in
      try fill(disk)
    } _: { fixture in
      fixture.store.put("b", "k", bytes)
      let cache = try fixture.cache()
      #expect(try cache.contents(object("k")) == bytes)
      #expect(cache.trouble != nil)
      #expect(cache.usage.files == 0)
      fixture.close()
    }
  }

  @Test(
    .enabled(if: geteuid() == 0, "only root can mount a small file system"),
    arguments: [true, false])
  func whatIsKeptIsServedFromADiskThatCannotBeWritten(_ isFull: Bool) throws {
    let bytes = version(100_000).bytes
    try onSmallDisk { fixture, disk in
      fixture.store.put("b", "k", bytes)
      _ = try fixture.cache().ensure(object("k"), Call())
      fixture.close()
      if isFull {
        try fill(disk)
      } else {
        try run("/bin/mount", "-o", "remount,ro", disk)
      }
      fixture.store.outage = StoreError(.offline, "gone")
    } _: { fixture in
      let cache = try fixture.cache()
      #expect(try cache.contents(object("k")) == bytes)
      #expect(cache.trouble != nil)
      fixture.store.outage = nil
      fixture.store.put("b", "other", [1, 2, 3])
      #expect(try cache.contents(object("other")) == [1, 2, 3])
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can mount a small file system"))
  func listingsOutliveADiskThatWasFullWhenItWasMounted() throws {
    let folder = FolderName(bucket: "b")
    func listings(_ fixture: CacheFixture) throws -> Listings {
      Listings(
        store: fixture.store, database: try fixture.cache().database,
        options: ListingOptions(maxAge: .zero))
    }
    func kept(_ fixture: CacheFixture) throws -> Int? { try listings(fixture).kept(folder)?.count }
    try onSmallDisk { fixture, disk in
      for name: ByteString in ["k", "other"] { fixture.store.put("b", name, name.bytes) }
      _ = try fixture.cache().ensure(object("k"), Call())
      _ = try listings(fixture).asked(folder, Call())
      fixture.close()
      try fill(disk)
    } _: { fixture in
      let cache = try fixture.cache()
      #expect(cache.database.isInMemory)
      #expect(try kept(fixture) == 2)
      try FileManager.default.removeItem(atPath: fixture.options.directory + "/../ballast")
      #expect(
        eventually {
          cache.keepHouse()
          return !cache.database.isInMemory
        })
      #expect(try kept(fixture) == 2)
      #expect(cache.trouble == nil)
      fixture.store.outage = StoreError(.offline, "gone")
      let again = try fixture.reopen()
      #expect(!again.database.isInMemory)
      #expect(try kept(fixture) == 2)
      #expect(try again.contents(object("k")) == ByteString("k").bytes)
    }
  }

  @Test func anIndexThatCannotBeWrittenLeavesTheOldFileAsItIs() throws {
    let fixture = try CacheFixture()
    fixture.store.put("b", "k", [1])
    let cache = try fixture.cache()
    _ = try cache.ensure(object("k"), Call())
    fixture.close()
    let before = try Data(contentsOf: URL(fileURLWithPath: fixture.path("cache.db")))
    let directory = try CacheDirectory(
      fixture.options.directory, mountPoint: "/mnt/here", identity: "somebody")
    defer { directory.unlock() }
    // In the way of the new file, and not to be removed like one.
    try FileManager.default.createDirectory(
      atPath: fixture.path("cache.db-new"), withIntermediateDirectories: false)
    let opener = IndexOpener(directory: directory, identity: "somebody")
    #expect(throws: DatabaseError.self) {
      var memory = try Connection()
      try opener.keep(&memory)
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path("cache.db"))) == before)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can mount a small file system"))
  func whereNoFolderCanBeMadeFilesAreServedAllTheSame() throws {
    try onSmallDisk { _, disk in
      try run("/bin/mount", "-o", "remount,ro", disk)
    } _: { fixture in
      fixture.store.put("b", "k", [1, 2, 3])
      let cache = try fixture.cache()
      #expect(try cache.contents(object("k")) == [1, 2, 3])
      #expect(cache.trouble == Errno.readOnly.description)
      cache.keepHouse()
    }
  }

  private func run(_ program: String, _ arguments: String...) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }
}
