import Foundation
import Platform
import TestSupport
import Testing

@Suite struct DirectoryLockTests {
  let scratch: Scratch

  init() throws {
    scratch = try Scratch()
  }

  /// Why a folder cannot be locked; nil when it can, and then it is let go of again.
  private func failure(_ path: String) throws -> DirectoryLock.Failure? {
    let directory = try Directory(path)
    do throws(DirectoryLock.Failure) {
      try DirectoryLock(directory, at: path).release()
      return nil
    } catch {
      return error
    }
  }

  @Test func oneHolderAtATimeAndTheNextIsToldWhoItIs() throws {
    let path = try scratch.folder("held")
    let directory = try Directory(path)
    let lock = try DirectoryLock(directory, at: path, note: "/mnt/photos")
    let holder = DirectoryLock.Holder(pid: getpid(), note: "/mnt/photos")
    #expect(try failure(path) == .held(holder))
    lock.release()
    #expect(try failure(path) == nil)
  }

  @Test func theLockHoldsWhateverIsRemovedFromTheFolder() throws {
    let path = try scratch.folder("held")
    let directory = try Directory(path)
    let lock = try DirectoryLock(directory, at: path)
    try FileManager.default.removeItem(atPath: path + "/lock")
    #expect(try failure(path) == .held(DirectoryLock.Holder(pid: nil, note: nil)))
    #expect(lock.isHeld(at: path))
  }

  @Test func anotherFolderInItsPlaceIsNotTheOneThatIsHeld() throws {
    let path = try scratch.folder("held")
    let directory = try Directory(path)
    let lock = try DirectoryLock(directory, at: path)
    try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
    #expect(!lock.isHeld(at: path))
    try scratch.folder("held")
    #expect(!lock.isHeld(at: path))
    #expect(lock.isHeld(at: path + ".moved"))
    #expect(
      throws: DirectoryLock.Failure.system(.stale), "the folder was replaced while it was opened"
    ) {
      lock.release()
      _ = try DirectoryLock(directory, at: path)
    }
  }
}
