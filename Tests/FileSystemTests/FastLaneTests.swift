import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

@testable import FileSystem
@testable import PendingQueue

/// What the threads do that read the kernel's requests: they wait for nobody.
@Suite struct FastLaneTests {
  /// What is asked of a file whose record another thread is changing.
  enum Work: CaseIterable {
    case open
    case openForWriting
    case empty
    case write
    case truncate
    case set
    case flush
    case release

    var hasHandle: Bool { [.write, .truncate, .flush, .release].contains(self) }
    var isWritten: Bool { [.flush, .release].contains(self) }
  }

  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture(writing: true)
    fixture.store.createBucket("b")
  }

  /// Does the work on a thread of its own, so that one that waits fails the test, and no more.
  private func run(_ work: Work, _ inode: UInt64, _ handle: FileHandle?, _ caller: Caller) throws
    -> (thread: Platform.Thread, outcome: Locked<Failure?>)
  {
    let outcome = Locked<Failure?>(nil)
    let tree = fixture.tree
    let thread = try Platform.Thread(name: "worker") {
      do throws(Failure) {
        switch work {
        case .open: try tree.open(inode, flags: O_RDONLY, caller).close()
        case .openForWriting: try tree.open(inode, flags: O_WRONLY, caller).close()
        case .empty: try tree.open(inode, flags: O_WRONLY | O_TRUNC, caller).close()
        case .set, .truncate:
          var changes = AttributeChanges()
          if work == .set { changes.mode = 0o600 } else { changes.size = 1 }
          _ = try tree.set(changes, of: inode, handle, caller)
        case .write:
          guard let handle else { return }
          let bytes: [UInt8] = [7]
          try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in
            try tree.write(handle, UnsafeRawBufferPointer(bytes), at: 0, caller)
          }
        case .flush: if let handle { try tree.flush(handle, caller) }
        case .release: if let handle { try tree.release(handle, caller) }
        }
      } catch {
        outcome.withLock { $0 = error }
      }
    }
    return (thread, outcome)
  }

  @Test(arguments: Work.allCases)
  func aFastWorkerDoesNotWaitForAnotherThreadsWorkOnARecord(_ work: Work) throws {
    fixture.hold()
    try fixture.put("b/a", [1, 2, 3])
    let inode = try fixture.inode("b/a")
    let handle =
      work.hasHandle ? try fixture.tree.open(inode, flags: O_WRONLY, TreeFixture.slow) : nil
    defer { handle?.close() }
    if let handle, work.isWritten { try fixture.write(handle, [9]) }
    let queue = try fixture.queue
    let id = try #require(queue.entry(for: ObjectName(bucket: "b", key: "a"))).id
    _ = queue.begin(id)
    let (thread, outcome) = try run(work, inode, handle, TreeFixture.fast)
    let hasReturned = thread.join(until: .now + .seconds(10))
    queue.end(id, nil)
    thread.join()
    #expect(hasReturned)
    #expect(outcome.withLock { $0 } == .takesTime)
    let (again, done) = try run(work, inode, handle, TreeFixture.brief)
    again.join()
    #expect(done.withLock { $0 } == nil)
  }

  @Test func aFastWorkerDoesNotCopyAFileThatIsOnItsWay() throws {
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .put)
    try fixture.put("b/a", [1])
    gate.awaitArrivals(1)
    let inode = try fixture.inode("b/a")
    #expect(throws: Failure.takesTime) {
      try fixture.tree.open(inode, flags: O_WRONLY | O_APPEND, TreeFixture.fast)
    }
    let handle = try fixture.tree.open(inode, flags: O_WRONLY | O_APPEND, TreeFixture.brief)
    gate.open()
    try fixture.write(handle, [2], at: 1)
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "a") == [1, 2])
  }
}
