import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import FileCache

/// A cache whose folder somebody clears while it is used.
@Suite struct RestoringTests {
  /// What is removed.
  enum Removal: String, CaseIterable, Sendable {
    case everythingInIt
    case theFolder
    case theFolderAndAnotherIsMade
    case theFolderAndTheOneAboveIt
    case copies
    case temporaryFiles
    case index
    case logOfTheIndex
    case logAndMapOfTheIndex
  }

  let fixture: CacheFixture

  init() throws {
    fixture = try CacheFixture()
    fixture.options.directory = fixture.scratch.path("above/cache")
    for name: ByteString in ["one", "two", "three", "four"] {
      fixture.store.put("b", name, name.bytes)
    }
  }

  private var folder: String { fixture.options.directory }

  /// As rm(1) does, once more where something was made in it meanwhile.
  private func removeAll(_ path: String) throws {
    for number in 1...50 {
      do {
        return try FileManager.default.removeItem(atPath: path)
      } catch {
        if !FileManager.default.fileExists(atPath: path) { return }
        if number == 50 { throw error }
        usleep(10_000)
      }
    }
  }

  private func remove(_ removal: Removal) throws {
    let files = FileManager.default
    func remove(_ names: String...) throws {
      for name in names { try removeAll(folder + "/" + name) }
    }
    switch removal {
    case .everythingInIt:
      for name in try files.contentsOfDirectory(atPath: folder) { try remove(name) }
    case .theFolder: try removeAll(folder)
    case .theFolderAndAnotherIsMade:
      try removeAll(folder)
      #expect(mkdir(folder, 0o755) == 0)
    case .theFolderAndTheOneAboveIt:
      try removeAll(fixture.scratch.path("above"))
    case .copies: try remove("storage", "storage-hashed")
    case .temporaryFiles: try remove("tmp")
    case .index: try remove("cache.db", "cache.db-wal", "cache.db-shm")
    case .logOfTheIndex: try remove("cache.db-wal")
    case .logAndMapOfTheIndex: try remove("cache.db-wal", "cache.db-shm")
    }
  }

  private func isKept(_ name: ByteString) -> Bool {
    files(below: folder + "/storage").contains("b/\(name)")
  }

  @Test(arguments: Removal.allCases)
  func whatIsReadAfterItWasClearedIsKeptAgain(_ removal: Removal) throws {
    let cache = try fixture.cache()
    let listings = Listings(
      store: fixture.store, database: cache.database, options: ListingOptions(maxAge: .zero))
    _ = try listings.asked(FolderName(bucket: "b"), Call())
    for name: ByteString in ["one", "two"] { _ = try cache.ensure(object(name), Call()) }
    let open = try cache.open(object("one"), Call())
    cache.keepHouse()
    try remove(removal)

    // At once, before the housekeeper has come by.
    #expect(try open.readAll() == ByteString("one").bytes)
    for name: ByteString in ["two", "three"] {
      #expect(try cache.contents(object(name)) == name.bytes)
      _ = try cache.ensure(object(name), Call())
      #expect(isKept(name))
    }
    #expect(cache.trouble == nil)
    cache.keepHouse()
    _ = try cache.ensure(object("four"), Call())
    _ = try listings.asked(FolderName(bucket: "b"), Call())
    #expect(isKept("four"))
    #expect(cache.trouble == nil)
    #expect(!cache.database.isInMemory)
    for name in ["cache.db", "CACHEDIR.TAG", "tmp", "storage-hashed"] {
      #expect(FileManager.default.fileExists(atPath: folder + "/" + name), "\(name)")
    }
    var status = stat()
    #expect(lstat(folder, &status) == 0 && status.st_mode & 0o7777 == 0o700)
    open.close()

    let error = #expect(throws: CacheError.self) {
      _ = try FileCache(options: fixture.options, store: fixture.store)
    }
    #expect(
      error == .inUse(directory: folder, pid: getpid(), mountPoint: "/mnt/here"),
      "it is held as before")

    let again = try fixture.reopen()
    fixture.store.outage = StoreError(.offline, "gone")
    for name: ByteString in ["two", "three", "four"] {
      #expect(try again.contents(object(name)) == name.bytes)
    }
    let kept = Listings(
      store: fixture.store, database: again.database, options: ListingOptions(maxAge: .zero))
    #expect(kept.kept(FolderName(bucket: "b"))?.count == 4)
  }

  @Test func whoComesWhileTheFolderIsPutBackWaitsForIt() throws {
    let cache = try fixture.cache()
    for round in 0..<20 {
      try remove(.theFolder)
      let failures = try inParallel(6) { number -> Errno? in
        do throws(Errno) {
          cache.discard(
            try PartFile.make(in: cache.directory, content: UInt64(round * 6 + number)))
          return nil
        } catch {
          return error
        }
      }
      #expect(failures == [nil, nil, nil, nil, nil, nil])
    }
  }

  /// Opens a second cache where the first one's folder was removed.
  private func takeOver() throws -> FileCache {
    for _ in 0..<100 {
      try remove(.theFolder)
      do {
        return try FileCache(options: fixture.options, store: fixture.store)
      } catch CacheError.inUse {
        // The first one has put it back already.
      }
    }
    return try FileCache(options: fixture.options, store: fixture.store)
  }

  @Test func aFolderThatAnotherProgramHasTakenIsLeftToIt() throws {
    let cache = try fixture.cache()
    _ = try cache.ensure(object("one"), Call())
    let other = try takeOver()
    #expect(try cache.contents(object("two")) == ByteString("two").bytes)
    cache.keepHouse()
    #expect(cache.trouble?.contains("in use") ?? false)
    #expect(files(below: folder + "/storage").isEmpty)
    other.close()
    cache.keepHouse()
    #expect(try cache.contents(object("two")) == ByteString("two").bytes)
    _ = try cache.ensure(object("two"), Call())
    #expect(isKept("two"))
    #expect(cache.trouble == nil)
  }

  @Test func whereItCannotBeMadeAgainFilesAreReadAllTheSame() throws {
    let cache = try fixture.cache()
    try remove(.theFolder)
    try fixture.scratch.file("above/cache", [])
    #expect(try cache.contents(object("one")) == ByteString("one").bytes)
    cache.keepHouse()
    #expect(cache.trouble?.contains("not a folder") ?? false)
    try FileManager.default.removeItem(atPath: folder)
    cache.keepHouse()
    _ = try cache.ensure(object("one"), Call())
    #expect(isKept("one"))
    #expect(cache.trouble == nil)
  }
}
