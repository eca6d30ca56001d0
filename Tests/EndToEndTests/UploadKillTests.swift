import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// The program killed at each named step of writing, sending, handing over, renaming and removing.
@Suite(.serialized) struct UploadKillTests {
  private let project: Project
  private var machine: Machine { project.machine }
  /// What the files are to hold, by name; the last is large enough to be sent in parts.
  private let contents: [String: [UInt8]]

  init() throws {
    project = try Project()
    project.emulator.createBucket("album")
    var random = SeededGenerator(seed: 11)
    var contents: [String: [UInt8]] = [:]
    for (name, size) in [("a.bin", 3000), ("b.bin", 70_000), ("c.bin", 7 << 20)] {
      contents[name] = random.bytes(size)
      try project.machine.scratch.file("outside/\(name)", contents[name] ?? [])
    }
    try project.machine.scratch.folder("acknowledged")
    self.contents = contents
  }

  private func isAcknowledged(_ name: String) -> Bool {
    FileManager.default.fileExists(atPath: machine.scratch.path("acknowledged/\(name)"))
  }

  private func waitForDeath() -> Bool {
    for _ in 0..<3000 {
      if project.isDead { return true }
      usleep(10_000)
    }
    return false
  }

  /// Drains, and looks whether everything that was acknowledged is in the store, once and right.
  private func check(_ step: String, _ expected: [String: [UInt8]]) throws {
    let records = try project.queue()
    #expect(records.allSatisfy { $0["state"] as? String != "writing" }, "\(step): \(records)")
    let wait = try project.wait()
    let failed = try project.queue()
    #expect(wait.code == (failed.isEmpty ? 0 : 3), "\(step): \(wait.error)")
    for record in failed {
      #expect(record["kind"] as? String == "interrupted", "\(step): \(record)")
      #expect(!isAcknowledged(record["object_path"] as? String ?? ""), "\(step): \(record)")
    }
    for (name, bytes) in expected where isAcknowledged(name) {
      #expect(try project.stored(name) == bytes, "\(step): \(name)")
      #expect(try project.read(name) == bytes, "\(step): \(name)")
    }
    for key in project.emulator.keys("album") {
      let bytes = try #require(expected[key.description], "\(step): \(key) is a stranger")
      #expect(try project.stored(key.description) == bytes, "\(step): \(key)")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: machine.mountpoint)
    #expect(names.count == Set(names).count)
    #expect(Set(names).isSubset(of: expected.keys))
    let aside = (try machine.status()["queue"] as? [String: Any])?["aside"] as? Int
    #expect(aside == 0, "\(step)")
    try machine.unmount()
  }

  @Test(
    .timeLimit(.minutes(2)),
    arguments: [
      "commit.data-created", "commit.data-created:3", "commit.record-written",
      "commit.record-written:4", "commit.record-replaced", "commit.record-replaced:2",
      "commit.record-replaced:5", "commit.data-synced", "commit.done", "upload.marked",
      "upload.marked:2", "upload.token-saved", "upload.sent", "upload.sent:3", "upload.verified",
      "handover.taken", "handover.taken:2", "handover.done", "handover.done:2",
    ])
  func aKillWhileFilesAreCopiedInLosesNothingThatWasAcknowledged(step: String) throws {
    try project.mount(killedAt: step, "max_age=1,bucket=album")
    let copied = try machine.shell(
      """
      for name in a.bin b.bin c.bin; do
        cp "outside/$name" "$M/$name" && touch "acknowledged/$name" || exit 0
      done
      """)
    #expect(copied.code == 0)
    #expect(waitForDeath(), "\(step) was not reached")
    try project.mount("max_age=1,bucket=album")
    try check(step, contents)
  }

  @Test(
    .timeLimit(.minutes(2)),
    arguments: ["rename.moved", "rename.left", "commit.record-replaced:4"])
  func aKillDuringARenameLeavesTheFileUnderOneName(step: String) throws {
    project.emulator.setFault(Fault(route: "upload", effect: .hang))
    try project.mount(killedAt: step, "max_age=1,bucket=album,timeout=30s")
    _ = try machine.shell(
      """
      cp outside/a.bin "$M/a.bin" && touch acknowledged/a.bin && sleep 1
      mv "$M/a.bin" "$M/z.bin" && touch acknowledged/z.bin
      """)
    if !waitForDeath() { try machine.killMount() }
    project.emulator.clearFaults()
    let bytes = try #require(contents["a.bin"])
    let isRenamed = isAcknowledged("z.bin")
    try project.mount("max_age=1,bucket=album")
    let names = try FileManager.default.contentsOfDirectory(atPath: machine.mountpoint)
    #expect(names.count == 1, "\(step): \(names)")
    let name = try #require(names.first)
    #expect(name == "z.bin" || (name == "a.bin" && !isRenamed))
    #expect(try project.wait().code == 0)
    #expect(project.emulator.keys("album") == [ByteString(name)])
    #expect(try project.stored(name) == bytes)
    #expect(try project.read(name) == bytes)
    try machine.unmount()
  }

  @Test(.timeLimit(.minutes(2)), arguments: ["remove.marked", "remove.data-gone"])
  func aKillDuringARemovalLeavesTheWholeFileOrNone(step: String) throws {
    project.emulator.setFault(Fault(route: "upload", effect: .hang))
    try project.mount(killedAt: step, "max_age=1,bucket=album,uploads=1,timeout=30s")
    _ = try machine.shell(
      """
      cp outside/a.bin "$M/a.bin" && cp outside/b.bin "$M/b.bin" && sleep 1
      rm "$M/b.bin"
      """)
    #expect(waitForDeath(), "\(step) was not reached")
    project.emulator.clearFaults()
    try project.mount("max_age=1,bucket=album")
    #expect(try project.wait().code == 0)
    #expect(project.emulator.keys("album") == ["a.bin"])
    #expect(try project.stored("a.bin") == contents["a.bin"])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: machine.mountpoint) == ["a.bin"])
    try machine.unmount()
  }
}
