import BucketStore
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// Several handles of one file, and files whose name is another one's by now.
@Suite struct SharedFileTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture(writing: true)
    fixture.store.createBucket("b")
    fixture.hold()
  }

  private func openToWrite(_ inode: UInt64, flags: CInt = 0) throws -> FileHandle {
    try fixture.tree.open(inode, flags: O_RDWR | flags, TreeFixture.slow)
  }

  @Test func aFileCanBeWrittenWhileAnotherHandleOfItIsBeingClosed() throws {
    try fixture.put("b/a", [])
    let inode = try fixture.inode("b/a")
    let closing = Locked<FileHandle?>(nil)
    let isDone = Locked(false)
    let closer = try Platform.Thread(name: "closer") {
      while !isDone.withLock({ $0 }) {
        closing.withLock { handle -> FileHandle? in
          defer { handle = nil }
          return handle
        }?.close()
      }
    }
    defer {
      isDone.withLock { $0 = true }
      closer.join()
    }
    for index in 0..<2000 {
      let handle = try openToWrite(inode)
      try fixture.write(handle, [UInt8(index & 255)], at: Int64(index))
      try fixture.tree.flush(handle, TreeFixture.slow)
      closing.withLock { $0 = handle }
    }
    #expect(try fixture.contents("b/a") == (0..<2000).map { UInt8($0 & 255) })
  }

  @Test func aReplacedFileIsOpenedAgainAsItselfAndNotAsWhatHasItsName() throws {
    try fixture.put("b/a", [1])
    let inode = try fixture.inode("b/a")
    let first = try openToWrite(inode)
    try fixture.put("b/tmp", [2])
    try fixture.rename("b/tmp", to: "b/a")
    let second = try openToWrite(inode)
    let reader = try fixture.tree.open(inode, flags: O_RDONLY, TreeFixture.slow)
    #expect(try fixture.read(reader) == [1])
    try fixture.write(second, [3])
    #expect(try fixture.read(first) == [3])
    #expect(try fixture.contents("b/a") == [2])
    for handle in [first, second] { handle.close() }
    #expect(try fixture.read(reader) == [3])
    #expect(fixture.errno { _ = try openToWrite(inode) } == .stale)
    #expect(fixture.errno { _ = try openToWrite(inode, flags: O_TRUNC) } == .stale)
    reader.close()
    #expect(try fixture.contents("b/a") == [2])
  }

  @Test func aRemovedFileIsNotOpenedAsAnotherOneOfItsName() throws {
    fixture.store.put("b", "a", [1])
    let reader = try fixture.open("b/a")
    try fixture.remove("b/a")
    try fixture.put("b/a", [2])
    for flags in [O_RDONLY, O_RDWR, O_WRONLY | O_TRUNC] {
      #expect(
        fixture.errno { _ = try fixture.tree.open(reader.inode, flags: flags, TreeFixture.slow) }
          == .stale)
    }
    #expect(try fixture.read(reader) == [1])
    reader.close()
    #expect(try fixture.contents("b/a") == [2])
  }

  @Test func whoWaitsForAnotherChangeOfAFileCanBeInterrupted() throws {
    fixture.store.put("b", "a", [1])
    let handle = try openToWrite(fixture.inode("b/a"))
    let tree = fixture.tree
    let folder = try fixture.inode("b")
    @Sendable func write(_ caller: Caller) -> Errno? {
      let bytes: [UInt8] = [2]
      do throws(Failure) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in
          try tree.write(handle, UnsafeRawBufferPointer(bytes), at: 0, caller)
        }
        return nil
      } catch {
        return error.errno
      }
    }
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .move)
    let mover = try Platform.Thread(name: "mover") {
      do throws(Failure) {
        try tree.rename("a", in: folder, to: "c", in: folder, flags: 0, TreeFixture.slow)
      } catch {
        Issue.record("\(error)")
      }
    }
    gate.awaitArrivals(1)
    #expect(write(TreeFixture.brief) == .again)
    let cancellation = Cancellation()
    let caller = Caller(processID: 1, lane: .slow, call: Call(cancellation: cancellation))
    let result = Locked<Errno?>(nil)
    let waiter = try Platform.Thread(name: "waiter") {
      let errno = write(caller)
      result.withLock { $0 = errno }
    }
    cancellation.cancel()
    waiter.join()
    #expect(result.withLock { $0 } == .interrupted)
    gate.open()
    mover.join()
    #expect(write(TreeFixture.slow) == nil)
    handle.close()
    #expect(try fixture.contents("b/c") == [2])
  }
}
