import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// A store that refuses, fails, falls silent or is cut off: what becomes of a file on its way there.
@Suite(.serialized) struct UploadFaultTests {
  private let project: Project

  init() throws {
    project = try Project()
    project.emulator.createBucket("album")
  }

  private func write(_ name: String, _ bytes: [UInt8]) throws {
    let path = try project.machine.scratch.file("outside/\(name)", bytes)
    let outcome = try project.machine.run("cp", path, project.path(name))
    try #require(outcome.code == 0, "\(outcome.error)")
  }

  private func fault(_ effect: Fault.Effect, times: Int = -1) -> Fault {
    Fault(route: "upload", key: "bad.txt", times: times, effect: effect)
  }

  private static func refusal(_ code: Int, _ error: String) -> Fault.Effect {
    .status(
      400, ["statusCode": .string("\(code)"), "error": .string(error), "message": .string(error)])
  }

  /// A refusal that no try can change, by the server's words for it, and its kind.
  static let refusals: [(name: String, kind: String)] = [
    ("policy", "refused"), ("size", "tooLarge"), ("type", "typeRefused"), ("key", "keyRefused"),
    ("bucket", "notFound"),
  ]

  private func effect(_ name: String) -> Fault.Effect {
    switch name {
    case "policy": .trouble("RowLevelSecurity")
    case "size": Self.refusal(413, "Payload too large")
    case "type": Self.refusal(415, "invalid_mime_type")
    case "key": Self.refusal(400, "InvalidKey")
    default: .trouble("NoSuchBucket")
    }
  }

  @Test(.timeLimit(.minutes(3)), arguments: UploadFaultTests.refusals)
  func whatIsRefusedIsKeptToldAndSentNoMoreWhileOthersGoOn(name: String, kind: String) throws {
    project.emulator.setFault(fault(effect(name)))
    try project.mount("max_age=1,bucket=album")
    try write("bad.txt", [1, 2, 3])
    for index in 0..<5 { try write("good-\(index).txt", [UInt8(index)]) }
    let wait = try project.wait()
    #expect(wait.code == 3, "\(wait.error)")
    #expect(wait.error.contains("bad.txt: "))
    for index in 0..<5 { #expect(try project.stored("good-\(index).txt") == [UInt8(index)]) }
    let records = try project.queue()
    #expect(records.map { $0["object_path"] as? String } == ["bad.txt"])
    #expect(records.map { $0["state"] as? String } == ["failed"])
    #expect(records.map { $0["kind"] as? String } == [kind])
    #expect(records.map { $0["retryable"] as? Bool } == [false])
    #expect(try project.read("bad.txt") == [1, 2, 3])
    let sent = project.requests("upload")
    // Neither time nor another mount sends it again.
    try project.machine.unmount()
    try project.mount("max_age=1,bucket=album")
    try write("more.txt", [7])
    #expect(try project.wait().code == 3)
    #expect(project.requests("upload") == sent + 1)
    #expect(try project.read("bad.txt") == [1, 2, 3])
    // Until a person has changed something and says so.
    project.emulator.clearFaults()
    #expect(try project.machine.bucketfs("retry", project.path("bad.txt")).code == 0)
    #expect(try project.wait().code == 0)
    #expect(try project.stored("bad.txt") == [1, 2, 3])
    #expect(try project.read("bad.txt") == [1, 2, 3])
    try project.machine.unmount()
  }

  @Test(
    .timeLimit(.minutes(3)),
    arguments: ["SlowDown", "DatabaseReadOnly", "LockTimeout", "DatabaseTimeout", "InternalError"])
  func whatFailsForAWhileIsTriedAgainUntilItIsStored(trouble: String) throws {
    project.emulator.setFault(fault(.trouble(trouble), times: 2))
    try project.mount("max_age=1,bucket=album")
    try write("bad.txt", [1, 2, 3])
    try write("good.txt", [4])
    let wait = try project.wait()
    #expect(wait.code == 0, "\(wait.error)")
    #expect(try project.stored("bad.txt") == [1, 2, 3])
    #expect(try project.stored("good.txt") == [4])
    #expect(project.emulator.keys("album") == ["bad.txt", "good.txt"])
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func anUploadThatIsCutOffIsFinishedAndStoredOnce() throws {
    project.emulator.setFault(fault(.cutRequest(after: 50_000), times: 1))
    try project.mount("max_age=1,bucket=album")
    var random = SeededGenerator(seed: 5)
    let bytes = random.bytes(200_000)
    try write("bad.txt", bytes)
    // The store is lost by that for a moment, and is found again.
    #expect(eventually { (try? project.wait(5).code) == 0 })
    #expect(try project.stored("bad.txt") == bytes)
    #expect(project.emulator.keys("album") == ["bad.txt"])
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func anAnswerThatIsLostDoesNotStoreAFileTwice() throws {
    project.emulator.setFault(fault(.loseAnswer, times: 1))
    try project.mount("max_age=1,bucket=album")
    try write("bad.txt", [1, 2, 3])
    #expect(eventually { (try? project.wait(5).code) == 0 })
    let facts = try #require(project.emulator.object("album", "bad.txt"))
    #expect(facts.createdAt == facts.updatedAt, "written once")
    #expect(try project.stored("bad.txt") == [1, 2, 3])
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func aSilentStoreHoldsNothingUpAndIsTriedAgain() throws {
    project.emulator.setFault(fault(.hang))
    try project.mount("max_age=1,bucket=album,timeout=2s")
    try write("bad.txt", [1, 2, 3])
    #expect(try project.wait(1).code == 4)
    #expect(try project.read("bad.txt") == [1, 2, 3])
    project.emulator.clearFaults()
    #expect(eventually { (try? project.wait(5).code) == 0 })
    #expect(try project.stored("bad.txt") == [1, 2, 3])
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func anotherWritersChangeIsNotOverwrittenAndBothAreKept() throws {
    try project.emulator.put("album", "shared.txt", Array("first".utf8))
    try project.mount("max_age=1,bucket=album")
    #expect(try project.read("shared.txt") == Array("first".utf8))
    #expect(try project.machine.bucketfs("offline", project.machine.mountpoint).code == 0)
    let edit = try project.machine.shell(#"printf ours > "$M/shared.txt""#)
    #expect(edit.code == 0, "\(edit.error)")
    try project.emulator.put("album", "shared.txt", Array("theirs".utf8))
    #expect(try project.machine.bucketfs("online", project.machine.mountpoint).code == 0)
    let wait = try project.wait()
    #expect(wait.code == 0, "\(wait.error)")
    let copy = try #require(
      project.emulator.keys("album").first { $0 != "shared.txt" }?.string)
    #expect(copy.hasPrefix("shared (conflict ") && copy.hasSuffix(").txt"), "\(copy)")
    let names = try project.machine.shell(#"ls "$M""#)
    #expect(names.output == "\(copy)\nshared.txt\n")
    for (name, bytes) in [("shared.txt", "theirs"), (copy, "ours")] {
      #expect(try project.read(name) == Array(bytes.utf8))
      #expect(try project.stored(name) == Array(bytes.utf8))
    }
    for _ in 0..<2 {
      let conflicts = try #require(project.machine.status()["conflicts"] as? [[String: Any]])
      #expect(conflicts.map { $0["path"] as? String } == [project.path("shared.txt")])
      #expect(conflicts.map { $0["copy"] as? String } == [project.path(copy)])
      let status = try project.machine.bucketfs("status", project.machine.mountpoint)
      #expect(status.output.contains("shared.txt was changed elsewhere too; ours is \(copy)\n"))
      // Told after a restart too.
      try project.machine.unmount()
      try project.mount("max_age=1,bucket=album")
    }
    try project.machine.unmount()
  }

  /// Waits, a minute at the most, until something holds.
  private func eventually(_ holds: () -> Bool) -> Bool {
    let end = Instant.now + .seconds(60)
    while Instant.now < end {
      if holds() { return true }
      usleep(100_000)
    }
    return false
  }
}
