import BucketStore
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// Every prefix of what is written to the folder, brought to a fresh one: as if the power had gone
/// right there.
@Suite struct ReplayTests {
  private typealias Files = [ByteString: [UInt8]]

  /// A step of a scenario, with what counts before and after it.
  private struct Passed {
    let operations: Range<Int>
    let before: Files
    let after: Files
  }

  private final class Recorder: Sendable {
    let operations = Locked<[FileOperation]>([])

    init(_ queue: PendingQueue) {
      queue.directory.journal.withLock { journal in
        journal = { [operations] operation in operations.withLock { $0.append(operation) } }
      }
    }

    var count: Int { operations.withLock { $0.count } }
  }

  /// Brings operations to a folder.
  private func replay(_ operations: some Sequence<FileOperation>, _ folder: String) throws {
    for operation in operations {
      switch operation {
      case .create(let name):
        _ = try File(folder + "/" + name, O_WRONLY | O_CREAT | O_TRUNC)
      case .write(let name, let offset, let bytes):
        let file = try File(folder + "/" + name, O_WRONLY)
        try bytes.withUnsafeBufferPointer { (buffer) throws(Errno) in
          try file.write(UnsafeRawBufferPointer(buffer), at: offset)
        }
      case .truncate(let name, let size):
        try File(folder + "/" + name, O_WRONLY).truncate(to: size)
      case .rename(let name, let other):
        try check { rename(folder + "/" + name, folder + "/" + other) }
      case .remove(let name):
        try check { unlink(folder + "/" + name) }
      case .syncFile, .syncFolder: break
      }
    }
  }

  /// What a start makes of the first operations.
  private func recover(_ operations: some Sequence<FileOperation>, store: MemoryStore? = nil)
    throws -> QueueFixture
  {
    let fixture = try QueueFixture(store: store)
    fixture.close()
    try replay(operations, fixture.folder)
    try fixture.reopen()
    return fixture
  }

  /// The bytes that wait to be sent: of each name, the last.
  private func waiting(_ fixture: QueueFixture) throws -> Files {
    var files: Files = [:]
    for entry in fixture.queue.entries where entry.state == .waiting {
      files[entry.object.key] = try File.contents(
        of: fixture.queue.directory.dataPath(entry.id))
    }
    return files
  }

  @Test func everyPrefixOfWritingIsRecovered() throws {
    let fixture = try QueueFixture()
    let queue = fixture.queue
    let recorder = Recorder(queue)
    var passed: [Passed] = []
    var state: Files = [:]
    func step(_ after: Files, _ body: () throws -> Void) throws {
      let start = recorder.count
      try body()
      passed.append(Passed(operations: start..<recorder.count, before: state, after: after))
      state = after
    }
    func close(_ file: PendingFile) throws {
      try file.flush()
      file.close()
    }

    try step(["a": [1, 2, 3]]) {
      let file = try queue.create(fixture.name("a"), NewFile(base: .absent))
      try fixture.write(file, [1, 2])
      try fixture.write(file, [3], at: 2)
      try close(file)
    }
    try step(state) { try queue.commit() }
    try step(["a": [1, 2, 3], "b": [4]]) { try fixture.add("b", [4]) }
    try step(["c": [1, 2, 3], "b": [4]]) {
      try queue.rename(fixture.name("a"), to: fixture.name("c"), base: .absent)
    }
    try step(["b": [1, 2, 3]]) {
      try queue.rename(fixture.name("c"), to: fixture.name("b"), base: .absent)
    }
    try step(state) { try queue.commit() }
    let replaced = try queue.edit(fixture.name("b"), keepingBytes: false)
    try step(state) { try fixture.write(replaced, [9, 9]) }
    try step(["b": [9, 9]]) {
      try close(replaced)
      try queue.commit()
    }
    try step([:]) { try queue.remove(fixture.name("b")) }

    let operations = recorder.operations.withLock { $0 }
    #expect(operations.count > 30)
    for step in passed {
      for end in step.operations.lowerBound...step.operations.upperBound {
        let recovered = try recover(operations[..<end])
        let files = try waiting(recovered)
        #expect(
          files == step.before || files == step.after,
          "after \(end) operations, \(operations[..<end].last.map { "\($0)" } ?? "none")")
        #expect(recovered.queue.counts.aside == 0)
      }
    }
  }

  @Test func everyPrefixOfAChangeInPlaceKeepsTheFileReadable() throws {
    let fixture = try QueueFixture()
    let recorder = Recorder(fixture.queue)
    try fixture.add("a", [1, 2, 3])
    try fixture.queue.commit()
    let start = recorder.count
    let file = try fixture.queue.edit(fixture.name("a"))
    try fixture.write(file, [9], at: 1)
    let changed = recorder.count
    try file.sync()
    let synced = recorder.count
    try file.flush()
    file.close()
    let operations = recorder.operations.withLock { $0 }
    for end in start...operations.count {
      let recovered = try recover(operations[..<end])
      let entry = try #require(recovered.entry("a"))
      let bytes = try recovered.bytes("a")
      #expect(bytes == [1, 2, 3] || bytes == [1, 9, 3])
      if end >= synced {
        #expect(entry.state == .waiting)
        #expect(bytes == [1, 9, 3])
      } else if bytes == [1, 9, 3], end <= changed {
        // Changed, but neither closed nor synced: not sent before a person says so.
        #expect(entry.record.failure?.kind == PendingFailure.interrupted)
      }
    }
  }

  @Test func everyPrefixOfSendingEndsWithTheFileStoredOnce() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2, 3])
    try fixture.queue.commit()
    let copy = try Scratch()
    try FileManager.default.copyItem(
      atPath: fixture.scratch.path("profile"), toPath: copy.path("profile"))
    let recorder = Recorder(fixture.queue)
    fixture.drain()
    let operations = recorder.operations.withLock { $0 }
    #expect(operations.count >= 4)
    for end in 0...operations.count {
      for isStored in [false, true] {
        let scratch = try Scratch()
        try FileManager.default.removeItem(atPath: scratch.path)
        try FileManager.default.copyItem(atPath: copy.path, toPath: scratch.path)
        let store = MemoryStore()
        store.createBucket("photos")
        let isGone = operations[..<end].contains { operation in
          if case .rename(_, let name) = operation { name.hasSuffix(".gone") } else { false }
        }
        if isStored || isGone {
          store.put(
            "photos", "a", [1, 2, 3],
            userMetadata: ["sha256": Digest.hex(.sha256, of: [1, 2, 3])])
        }
        let folder = scratch.path("profile/pending")
        try replay(operations[..<end], folder)
        // The receiver took the bytes before the record went; its rename is none of the queue's.
        if isGone {
          for name in try FileManager.default.contentsOfDirectory(atPath: folder)
          where name.hasSuffix(".data") {
            try FileManager.default.removeItem(atPath: folder + "/" + name)
          }
        }
        let recovered = try QueueFixture(scratch: scratch, store: store)
        recovered.drain()
        #expect(store.keys("photos") == ["a"])
        #expect(store.bytes("photos", "a") == [1, 2, 3])
        if isStored { #expect(store.facts("photos", "a")?.version == "v1") }
        #expect(recovered.queue.counts == PendingCounts())
        #expect(try recovered.kept.isEmpty)
      }
    }
  }

  @Test func everyPrefixOfARenameOnTheWayEndsWithOneName() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1, 2])
    fixture.store.inject(.loseAnswer(StoreError(.connectivity, "cut")), on: .put)
    fixture.drain()
    let copy = try Scratch()
    try FileManager.default.copyItem(
      atPath: fixture.scratch.path("profile"), toPath: copy.path("profile"))
    let recorder = Recorder(fixture.queue)
    try fixture.queue.rename(fixture.name("a"), to: fixture.name("b"), base: .absent)
    let operations = recorder.operations.withLock { $0 }
    #expect(operations.count >= 9)
    for end in 0...operations.count {
      let scratch = try Scratch()
      try FileManager.default.removeItem(atPath: scratch.path)
      try FileManager.default.copyItem(atPath: copy.path, toPath: scratch.path)
      try replay(operations[..<end], scratch.path("profile/pending"))
      let store = MemoryStore()
      store.createBucket("photos")
      store.put(
        "photos", "a", [1, 2], userMetadata: ["sha256": Digest.hex(.sha256, of: [1, 2])])
      let recovered = try QueueFixture(scratch: scratch, store: store)
      let shown = recovered.queue.entries.map(\.object.key)
      #expect(shown == ["a"] || shown == ["b"])
      recovered.drain()
      #expect(store.keys("photos") == Set(shown))
      #expect(try recovered.kept.isEmpty)
    }
  }
}
