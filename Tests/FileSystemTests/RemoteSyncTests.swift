import BucketStore
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// Closing and syncing where that means the store.
@Suite struct RemoteSyncTests {
  private let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture(writing: true) {
      $0.closeWaits = true
      $0.syncWaits = true
    }
    fixture.store.createBucket("b")
  }

  private var puts: Int { fixture.store.requests.count { $0.route == .put } }

  @Test func aCloseWaitsForTheStoreWhereItIsToldTo() throws {
    let handle = try fixture.create("b/a")
    try fixture.write(handle, [1, 2])
    #expect(throws: Failure.mustWait) { try fixture.tree.flush(handle, TreeFixture.fast) }
    try fixture.tree.flush(handle, TreeFixture.slow)
    #expect(fixture.store.bytes("b", "a") == [1, 2])
    // A descriptor that was duplicated is closed more than once.
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.drain() == .stored)
    #expect(puts == 1)
    #expect(try fixture.state("b/a") == "cached")
    #expect(try fixture.contents("b/a") == [1, 2])
  }

  @Test func aSyncWaitsForTheStoreWhereItIsToldToAndTheFileIsWrittenOn() throws {
    let handle = try fixture.create("b/a")
    for bytes in [[1], [2, 2], [3, 3, 3]] as [[UInt8]] {
      try fixture.write(handle, bytes)
      try fixture.tree.sync(handle, TreeFixture.slow)
      #expect(fixture.store.bytes("b", "a") == bytes)
    }
    try fixture.write(handle, [4])
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(fixture.store.bytes("b", "a") == [4, 3, 3])
    #expect(try fixture.drain() == .stored)
    #expect(try fixture.contents("b/a") == [4, 3, 3])
    #expect(puts == 4)
  }

  @Test func whatIsWrittenWhileTheStoreTakesAFileIsNotMixedIntoIt() throws {
    let gate = Gate()
    let handle = try fixture.create("b/a")
    try fixture.write(handle, [1, 1])
    fixture.store.inject(.commitAfter(gate), on: .put)
    let tree = fixture.tree
    let syncer = try Platform.Thread(name: "syncer") {
      do throws(Failure) { try tree.sync(handle, TreeFixture.slow) } catch {
        Issue.record("\(error)")
      }
    }
    gate.awaitArrivals(1)
    let bytes: [UInt8] = [2]
    #expect(throws: Failure.takesTime) {
      try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in
        try tree.write(handle, UnsafeRawBufferPointer(bytes), at: 0, TreeFixture.fast)
      }
    }
    gate.open()
    try fixture.write(handle, bytes)
    syncer.join()
    #expect(try [[1, 1], [2, 1]].contains(#require(fixture.store.bytes("b", "a"))))
    try fixture.tree.flush(handle, TreeFixture.slow)
    handle.close()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "a") == [2, 1])
  }

  @Test func aCloseThatWaitsIsToldWhyTheStoreHasNotTheFile() throws {
    let refused = try fixture.create("b/refused")
    try fixture.write(refused, [1])
    fixture.store.inject(.fail(StoreError(.refused, "no")), on: .put)
    #expect(fixture.errno { try fixture.tree.flush(refused, TreeFixture.slow) } == .permission)
    refused.close()
    #expect(try fixture.state("b/refused") == "failed")
    fixture.goOffline()
    let handle = try fixture.create("b/a")
    try fixture.write(handle, [1])
    #expect(
      fixture.errno { try fixture.tree.flush(handle, TreeFixture.slow) } == .networkUnreachable)
    handle.close()
    #expect(try fixture.contents("b/a") == [1])
    try fixture.goOnline()
    #expect(try fixture.drain() == .failed(1))
    #expect(fixture.store.bytes("b", "a") == [1])
  }

  @Test func aCloseThatWaitsCanBeInterrupted() throws {
    let gate = Gate()
    fixture.store.inject(.commitAfter(gate), on: .put)
    let handle = try fixture.create("b/a")
    try fixture.write(handle, [1])
    let cancellation = Cancellation()
    let caller = Caller(processID: 1, lane: .slow, call: Call(cancellation: cancellation))
    let tree = fixture.tree
    let failure = Locked<Failure?>(nil)
    let closer = try Platform.Thread(name: "closer") {
      do throws(Failure) { try tree.flush(handle, caller) } catch {
        failure.withLock { $0 = error }
      }
    }
    gate.awaitArrivals(1)
    cancellation.cancel()
    #expect(closer.join(until: .now + .seconds(10)))
    #expect(failure.withLock { $0 }?.errno == .interrupted)
    gate.open()
    handle.close()
    #expect(try fixture.drain() == .stored)
    #expect(fixture.store.bytes("b", "a") == [1])
    #expect(puts == 1)
  }

  @Test func aCloseDoesNotWaitWhileAnotherHandleWrites() throws {
    let first = try fixture.create("b/a")
    try fixture.write(first, [1])
    let second = try fixture.tree.open(fixture.inode("b/a"), flags: O_WRONLY, TreeFixture.slow)
    try fixture.tree.flush(first, TreeFixture.slow)
    first.close()
    #expect(fixture.store.keys("b") == [])
    try fixture.write(second, [2], at: 1)
    try fixture.tree.flush(second, TreeFixture.slow)
    second.close()
    #expect(fixture.store.bytes("b", "a") == [1, 2])
    #expect(puts == 1)
  }
}
