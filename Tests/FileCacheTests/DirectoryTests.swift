import FileCache
import Foundation
import Platform
import TestSupport
import Testing

@Suite struct DirectoryTests {
  private func mode(_ path: String) throws -> UInt32 {
    var status = stat()
    try check { lstat(path, &status) }
    return UInt32(status.st_mode) & 0o7777
  }

  @Test func foldersAndFilesAreTheOwnersAlone() throws {
    let fixture = try CacheFixture()
    fixture.store.put("b", "x/y", [1, 2, 3])
    fixture.store.put("b", "..", [1])
    let cache = try fixture.cache()
    _ = try cache.ensure(object("x/y"), Call())
    _ = try cache.ensure(object(".."), Call())
    #expect(try mode(fixture.options.directory) == 0o700)
    let names =
      FileManager.default.enumerator(atPath: fixture.options.directory)?.allObjects ?? []
    #expect(names.count >= 10)
    for case let name as String in names {
      var isFolder: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: fixture.path(name), isDirectory: &isFolder)
      #expect(try mode(fixture.path(name)) == (isFolder.boolValue ? 0o700 : 0o600), "\(name)")
    }
  }

  @Test func backupsAreToldToPassItOver() throws {
    let fixture = try CacheFixture()
    _ = try fixture.cache()
    let tag = try #require(fixture.contents("CACHEDIR.TAG"))
    #expect(tag.starts(with: Array("Signature: 8a477f597d28d172789f06886806bc55".utf8)))
  }

  @Test func aSecondProgramIsRefusedAndToldWhoTheFirstIs() throws {
    let fixture = try CacheFixture()
    _ = try fixture.cache()
    let error = #expect(throws: CacheError.self) {
      _ = try FileCache(options: fixture.options, store: fixture.store)
    }
    let sentence = "\(try #require(error))"
    #expect(sentence.contains("process \(getpid())"))
    #expect(sentence.contains("/mnt/here"))
    fixture.close()
    #expect(try fixture.cache().usage.files == 0, "free again")
  }

  @Test func aSecondProgramIsRefusedAlsoWhereEverythingInTheFolderWasRemoved() throws {
    let fixture = try CacheFixture()
    _ = try fixture.cache()
    for name in try FileManager.default.contentsOfDirectory(atPath: fixture.options.directory) {
      try FileManager.default.removeItem(atPath: fixture.path(name))
    }
    let error = #expect(throws: CacheError.self) {
      _ = try FileCache(options: fixture.options, store: fixture.store)
    }
    #expect(
      error == .inUse(directory: fixture.options.directory, pid: nil, mountPoint: nil))
  }

  @Test func aSymlinkInItsPlaceIsRefused() throws {
    let fixture = try CacheFixture()
    try fixture.scratch.folder("elsewhere")
    #expect(symlink(fixture.scratch.path("elsewhere"), fixture.options.directory) == 0)
    let error = #expect(throws: CacheError.self) { _ = try fixture.cache() }
    #expect("\(try #require(error))".contains("symbolic link"))
    #expect(files(below: fixture.scratch.path("elsewhere")).isEmpty)
  }

  @Test func aSymlinkOfAnotherUserAboveItIsRefused() throws {
    let fixture = try CacheFixture()
    try fixture.scratch.folder("elsewhere")
    #expect(symlink(fixture.scratch.path("elsewhere"), fixture.scratch.path("link")) == 0)
    if geteuid() == 0 { #expect(lchown(fixture.scratch.path("link"), 65534, 65534) == 0) }
    fixture.options.directory = fixture.scratch.path("link/cache")
    let error = #expect(throws: CacheError.self) { _ = try fixture.cache() }
    #expect("\(try #require(error))".contains("symbolic link"))
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a folder to another user"))
  func aFolderAboveItOfAnotherUserIsRefused() throws {
    let fixture = try CacheFixture()
    let parent = try fixture.scratch.folder("theirs")
    #expect(chown(parent, 65534, 65534) == 0)
    fixture.options.directory = parent + "/cache"
    let error = #expect(throws: CacheError.self) { _ = try fixture.cache() }
    #expect("\(try #require(error))".contains("belongs to user 65534"))
    #expect(!FileManager.default.fileExists(atPath: parent + "/cache"))
  }

  @Test func aFolderAboveItThatOthersMayWriteIsRefused() throws {
    let fixture = try CacheFixture()
    let parent = try fixture.scratch.folder("open")
    #expect(chmod(parent, 0o777) == 0)
    fixture.options.directory = parent + "/cache"
    #expect(throws: CacheError.self) { _ = try fixture.cache() }
    #expect(chmod(parent, 0o1777) == 0)
    #expect(try fixture.cache().usage.files == 0, "a sticky one is as good as /tmp")
  }

  @Test func aFolderAboveItThatTheOwnersOwnGroupMayWriteIsNoDanger() throws {
    let fixture = try CacheFixture()
    let parent = try fixture.scratch.folder("group")
    fixture.options.directory = parent + "/cache"
    #expect(chmod(parent, 0o775) == 0)
    if geteuid() == getegid() {
      #expect(try fixture.cache().usage.files == 0)
    } else {
      #expect(throws: CacheError.self) { _ = try fixture.cache() }
    }
  }

  @Test func aFolderThatOthersMayReadIsClosedToThemWhenItIsACache() throws {
    let fixture = try CacheFixture()
    _ = try fixture.cache()
    fixture.close()
    #expect(chmod(fixture.options.directory, 0o755) == 0)
    _ = try fixture.cache()
    #expect(try mode(fixture.options.directory) == 0o700)
  }

  @Test func aFolderThatHoldsOtherThingsIsNotTakenOver() throws {
    let fixture = try CacheFixture()
    try fixture.scratch.file("cache/letter.txt", [1])
    #expect(chmod(fixture.options.directory, 0o755) == 0)
    #expect(throws: CacheError.self) { _ = try fixture.cache() }
    #expect(try mode(fixture.options.directory) == 0o755)
  }

  @Test(arguments: ["cache", "./cache", "/", "/tmp/../tmp/cache"])
  func aPathThatIsNotPlainlyAbsoluteIsRefused(_ path: String) throws {
    let fixture = try CacheFixture { $0.directory = path }
    #expect(throws: CacheError.self) { _ = try fixture.cache() }
  }

  @Test func temporaryFilesOfACrashGoOnceTheyAreADayOld() throws {
    let fixture = try CacheFixture()
    _ = try fixture.cache()
    fixture.close()
    for name in ["old", "young"] { try fixture.scratch.file("cache/tmp/\(name).part", [1]) }
    let day: TimeInterval = 86_400
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -day - 60)],
      ofItemAtPath: fixture.path("tmp/old.part"))
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -day + 60)],
      ofItemAtPath: fixture.path("tmp/young.part"))
    _ = try fixture.cache()
    #expect(files(below: fixture.path("tmp")) == ["young.part"])
  }
}
