import BucketStore
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// A program killed at a named step, and the next one over the same folder and store.
@Suite struct KillTests {
  private static func open(_ path: String) throws -> PendingQueue {
    let queue = try PendingQueue(
      QueueOptions(directory: path + "/profile", owner: "anna"),
      store: DirectoryStore(path + "/store"))
    queue.allowSending()
    return queue
  }

  private static func drain(_ queue: PendingQueue) throws {
    repeat {
      try queue.commit()
      while case .ran = queue.step() {}
    } while !queue.state.withLock({ $0.uncommitted.isEmpty })
  }

  /// Writes a file, says so, and sends it or removes it: until the step that kills.
  private static func live(_ path: String, _ step: String, removes: Bool) throws {
    setenv("BUCKETFS_CRASH_AT", step, 1)
    let queue = try open(path)
    let name = ObjectName(bucket: "photos", key: "a")
    let file = try queue.create(name, NewFile(base: .absent))
    try [UInt8]([1, 2, 3]).withUnsafeBufferPointer { (buffer) throws(Errno) in
      try file.write(UnsafeRawBufferPointer(buffer), at: 0)
    }
    try file.flush()
    _ = try File(path + "/acknowledged", O_WRONLY | O_CREAT)
    file.close()
    try queue.commit()
    if removes { try queue.remove(name) }
    try drain(queue)
  }

  /// Writes a file whose name another writer has taken, and sends it: until the step that kills.
  private static func collide(_ path: String, _ step: String) throws {
    setenv("BUCKETFS_CRASH_AT", step, 1)
    let queue = try open(path)
    let file = try queue.create(
      ObjectName(bucket: "photos", key: "a.txt"), NewFile(base: .absent))
    try [UInt8]([1, 2, 3]).withUnsafeBufferPointer { (buffer) throws(Errno) in
      try file.write(UnsafeRawBufferPointer(buffer), at: 0)
    }
    try file.flush()
    file.close()
    try drain(queue)
  }

  private func look(_ scratch: Scratch, _ body: (PendingQueue, DirectoryStore) throws -> Void)
    throws
  {
    let queue = try Self.open(scratch.path)
    defer { queue.close() }
    try body(queue, try DirectoryStore(scratch.path("store")))
  }

  private func keys(_ store: DirectoryStore) throws -> [ByteString] {
    try store.list(ListRequest(bucket: "photos", prefix: "", delimited: false), Call())
      .objects.map(\.key)
  }

  @Test(arguments: [
    "commit.data-created", "commit.record-written", "commit.record-replaced",
    "commit.record-written:2", "commit.record-replaced:2", "commit.data-synced", "commit.done",
    "commit.record-written:3", "upload.marked", "upload.sent", "upload.verified", "handover.taken",
    "remove.marked", "remove.data-gone", "handover.done",
  ])
  func aKillWhileWritingOrSendingLosesNothingAndStoresOnce(_ step: String) async throws {
    let scratch = try Scratch()
    try scratch.folder("store/photos")
    let path = scratch.path
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, step = step as String] in
      try KillTests.live(path, step, removes: false)
    }
    let isAcknowledged = FileManager.default.fileExists(atPath: scratch.path("acknowledged"))
    try look(scratch) { queue, store in
      #expect(queue.counts.uploading == 0)
      #expect(queue.counts.aside == 0)
      let version =
        try keys(store).isEmpty
        ? nil : store.info(ObjectName(bucket: "photos", key: "a"), Call()).version
      try Self.drain(queue)
      #expect(queue.counts.unsent == 0)
      if isAcknowledged {
        #expect(try keys(store) == ["a"])
        #expect(try File.contents(of: scratch.path("store/photos/a")) == [1, 2, 3])
        #expect(queue.entries.isEmpty)
        if let version {
          let info = try store.info(ObjectName(bucket: "photos", key: "a"), Call())
          #expect(info.version == version)
        }
      } else {
        // Nobody was told that it is kept: then it may be kept all the same, or be readable here.
        let isWhole =
          try keys(store).isEmpty
          || File.contents(of: scratch.path("store/photos/a")) == [1, 2, 3]
        #expect(isWhole)
        #expect(queue.entries.allSatisfy { $0.record.failure?.kind == PendingFailure.interrupted })
      }
    }
  }

  /// The fourth and fifth record are those that give the file its new name and send it.
  @Test(arguments: [
    "upload.marked", "commit.record-written:4", "commit.record-replaced:4", "conflict.moved",
    "commit.record-written:5", "commit.record-replaced:5", "upload.marked:2", "upload.sent",
    "upload.verified", "handover.taken", "remove.marked", "remove.data-gone", "handover.done",
  ])
  func aKillWhileAFileIsSetAsideLeavesOneCopy(_ step: String) async throws {
    let scratch = try Scratch()
    _ = try scratch.file("store/photos/a.txt", [9])
    let path = scratch.path
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, step = step as String] in
      try KillTests.collide(path, step)
    }
    try look(scratch) { queue, store in
      #expect(queue.counts.aside == 0)
      let pending = Set(queue.entries.map(\.object.key))
      #expect(try pending.union(keys(store)).subtracting(["a.txt"]).count <= 1)
      try Self.drain(queue)
      #expect(queue.entries.isEmpty)
      let names = try keys(store)
      #expect(names.count == 2, "\(names)")
      for name in names {
        let bytes = try File.contents(of: scratch.path("store/photos/\(name)"))
        #expect(bytes == (name == "a.txt" ? [9] : [1, 2, 3]))
      }
    }
  }

  @Test(arguments: ["remove.marked", "remove.data-gone"])
  func aKillWhileRemovingLeavesNothingHalfRemoved(_ step: String) async throws {
    let scratch = try Scratch()
    try scratch.folder("store/photos")
    let path = scratch.path
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, step = step as String] in
      try KillTests.live(path, step, removes: true)
    }
    try look(scratch) { queue, store in
      #expect(queue.entries.isEmpty)
      #expect(queue.counts == PendingCounts())
      try Self.drain(queue)
      let left = try keys(store)
      #expect(left.isEmpty)
    }
  }
}

/// A disk without room.
@Suite(.enabled(if: geteuid() == 0, "mounting a small disk needs root")) struct RoomTests {
  @Test func aFullDiskIsToldToTheWriterAndLosesNothing() throws {
    let scratch = try Scratch()
    try scratch.folder("profile")
    let disk = scratch.path("profile")
    try #require(mount("tmpfs", disk, "tmpfs", 0, "size=1m,mode=700") == 0)
    defer { umount2(disk, 2) }
    let fixture = try QueueFixture(scratch: scratch)
    defer { fixture.close() }
    try fixture.add("kept", [1, 2, 3])
    try fixture.queue.commit()
    let file = try fixture.queue.create(fixture.name("big"), NewFile(base: .absent))
    var written: Int64 = 0
    let error = #expect(throws: Errno.self) {
      while written < 4 << 20 {
        try fixture.write(file, [UInt8](repeating: 7, count: 64 << 10), at: written)
        written += 64 << 10
      }
    }
    #expect(error == .noSpace)
    // To the very last page.
    #expect(throws: Errno.noSpace) {
      while true {
        try fixture.write(file, [UInt8](repeating: 7, count: 4096), at: written)
        written += 4096
      }
    }
    #expect(try fixture.bytes("kept") == [1, 2, 3])
    #expect(try QueueFixture.read(file).prefix(Int(written)).allSatisfy { $0 == 7 })
    #expect(throws: Errno.noSpace) { try file.flush() }
    // Nothing more can be written here, and what is whole is sent all the same.
    file.close()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "kept") == [1, 2, 3])
    fixture.now = fixture.now + .seconds(60)
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["kept"])
    #expect(fixture.entry("big")?.record.failure?.kind == PendingFailure.noRoom)
    #expect(try fixture.bytes("big")?.count == Int(written))
    try fixture.queue.remove(fixture.name("big"))
    #expect(fixture.queue.entries.isEmpty)
    try fixture.add("next", [1])
    fixture.drain()
    #expect(fixture.store.bytes("photos", "next") == [1])
  }
}
