import BucketStore
import Foundation
import PendingQueue
import Platform
import TestSupport
import Testing

extension MountTests {
  /// The rows of docs/semantics.md: two devices with a mount of one bucket each.
  @Suite struct ConflictTests {
    /// A row of the table.
    struct Row: Sendable, CustomTestStringConvertible {
      let name: String
      /// What the first device does before, stored and seen by both.
      var before = ""
      /// What it does while it is away.
      let here: String
      /// What the other device does meanwhile, stored at once.
      let there: String
      /// What it does then, still holding back what it has to send, but reaching the store.
      var then: String?
      /// What both see at the end; a conflict copy's mark is `(conflict)`.
      let after: [String]

      var testDescription: String { name }
    }

    static let rows = [
      Row(
        name: "new here, new there", here: "echo ours > f.txt", there: "echo theirs > f.txt",
        after: ["f (conflict).txt: ours", "f.txt: theirs"]),
      Row(
        name: "changed, changed", before: "echo old > f.txt", here: "echo ours >> f.txt",
        there: "echo theirs > f.txt", after: ["f (conflict).txt: old ours", "f.txt: theirs"]),
      Row(
        name: "copied over", before: "echo old > f", here: "echo ours > g; cp g f; rm g",
        there: "echo theirs >> f", after: ["f (conflict): ours", "f: old theirs"]),
      Row(
        name: "saved by rename", before: "echo old > .f", here: "echo ours > t; mv t .f",
        there: "echo theirs > t; mv t .f", after: [".f (conflict): ours", ".f: theirs"]),
      Row(
        name: "changed here, deleted there", before: "echo old > f", here: "echo ours >> f",
        there: "rm f", after: ["f: old ours"]),
      Row(
        name: "changed here, renamed there", before: "echo old > f", here: "echo ours >> f",
        there: "mv f g", after: ["f: old ours", "g: old"]),
      Row(
        name: "renamed here, changed there", before: "echo old > f", here: "echo ours >> f",
        there: "echo theirs > f", then: "mv f g", after: ["f: theirs", "g: old ours"]),
      Row(
        name: "renamed here, renamed there", before: "echo old > f", here: "echo ours >> f",
        there: "mv f h", then: "mv f g", after: ["g: old ours", "h: old"]),
      Row(
        name: "renamed here onto what is new there", before: "echo old > f",
        here: "echo ours > t; mv t g", there: "echo theirs > g",
        after: ["f: old", "g (conflict): ours", "g: theirs"]),
      Row(
        name: "deleted here, changed there", before: "echo old > f; echo more > g",
        here: "echo ours > f", there: "echo theirs > f", then: "rm f",
        after: ["f: theirs", "g: more"]),
      Row(
        name: "the same bytes on both sides", before: "echo old > f",
        here: "echo new > f; echo one > g", there: "echo new > f; echo one > g",
        after: ["f: new", "g: one"]),
      Row(
        name: "the same folder on both sides", here: "mkdir d; echo ours > d/x",
        there: "mkdir d; echo theirs > d/y", after: ["d/", "d/x: ours", "d/y: theirs"]),
      Row(
        name: "a folder deleted there while files wait here", before: "mkdir d; echo old > d/x",
        here: "echo ours > d/y", there: "rm -r d", after: ["d/", "d/y: ours"]),
      Row(
        name: "written by one alone", before: "echo old > f",
        here: "echo ours >> f; echo a > g; mv g h; echo b >> h", there: "cat f",
        after: ["f: old ours", "h: a b"]),
    ]

    private static func marked(_ lines: [String]) -> [String] {
      lines.map { line in
        line.replacing(/\(conflict \d{4}-\d\d-\d\d \d\d\.\d\d [A-Za-z0-9-]+\)/, with: "(conflict)")
      }.sorted()
    }

    @Test(arguments: rows, [false, true])
    func bothContentsAreKeptAndBothDevicesAgree(_ row: Row, _ losesAnswer: Bool) throws {
      let store = MemoryStore()
      try Device.pair(store) { first, second in
        if !row.before.isEmpty {
          try first.run(row.before)
          try first.drain()
          #expect(try second.contents() == first.contents())
        }
        _ = try first.contents()
        first.leave()
        try first.run(row.here)
        try second.run(row.there)
        try second.drain()
        if let then = row.then {
          first.isHeld.withLock { $0 = true }
          first.door.isOpen = true
          first.mounted.fileSystem.distrust()
          try first.run(then)
        }
        if losesAnswer {
          store.inject(.loseAnswer(StoreError(.connectivity, "the line broke")), on: .put)
        }
        first.comeBack()
        try first.drain()
        let seen = try first.contents()
        #expect(Self.marked(seen) == row.after.sorted())
        #expect(try second.contents() == seen)
        let conflicts = first.mounted.fileSystem.queue?.conflicts ?? []
        #expect(conflicts.count == seen.count { $0.contains("(conflict ") })
        #expect(second.mounted.fileSystem.queue?.conflicts.isEmpty == true)
      }
    }

    @Test func aFileAgainstAFolderIsStoredAndTold() throws {
      let store = MemoryStore()
      try Device.pair(store) { first, second in
        _ = try first.contents()
        first.leave()
        try first.run("echo ours > x")
        try second.run("mkdir x; echo theirs > x/y")
        try second.drain()
        first.comeBack()
        try first.drain()
        #expect(store.bytes("b", "x") == Array("ours\n".utf8))
        for device in [first, second] {
          #expect(try device.contents() == ["x/", "x/y: theirs"])
          #expect(device.mounted.fileSystem.hiddenKeys(limit: 9).map(\.key) == ["x"])
        }
      }
    }

    @Test func whoReadsTheFileGoesOnReadingItAndTheNameLeadsToTheirs() throws {
      let store = MemoryStore()
      try Device.pair(store) { first, second in
        try first.run("echo old > f")
        try first.drain()
        first.leave()
        try first.run("echo ours > f")
        try second.run("echo theirs and more > f")
        try second.drain()
        let reader = try FileHandle(
          forReadingFrom: URL(fileURLWithPath: first.mounted.path + "/b/f"))
        #expect(try reader.read(upToCount: 2) == Data("ou".utf8))
        first.comeBack()
        try first.drain()
        #expect(try reader.readToEnd() == Data("rs\n".utf8))
        #expect(try first.run("cat f; stat -c %s f") == "theirs and more\n16\n")
        try reader.close()
      }
    }

    @Test func whoWritesAllTheWhileIsSetAsideOnceWhenItIsDone() throws {
      let store = MemoryStore()
      try Device.pair(store) { first, second in
        try first.run("echo old > f")
        try first.drain()
        first.leave()
        let path = first.mounted.path + "/b/f"
        try first.run("echo ours > f")
        let writer = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try writer.seekToEnd()
        try writer.write(contentsOf: Data("one\n".utf8))
        try second.run("echo theirs > f")
        try second.drain()
        first.comeBack()
        #expect(try first.mounted.drain(within: 0.5) == .outOfTime)
        try writer.write(contentsOf: Data("two\n".utf8))
        try writer.close()
        try first.drain()
        #expect(Self.marked(try first.contents()) == ["f (conflict): ours one two", "f: theirs"])
        #expect(try second.contents() == first.contents())
      }
    }
  }
}
