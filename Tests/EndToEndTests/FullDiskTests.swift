import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// A disk that is too small: what a writer is told, and what becomes of the files.
@Suite(.serialized, .enabled(if: geteuid() == 0, "only root mounts a small disk"))
struct FullDiskTests {
  /// A file system of a few megabytes, taken away again at the end.
  private final class SmallDisk {
    let path: String

    init(_ scratch: Scratch, megabytes: Int) throws {
      path = try scratch.folder("disk")
      let outcome = try Child.run(
        ["mount", "-t", "tmpfs", "-o", "size=\(megabytes)m,mode=0700", "tmpfs", path],
        environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"], in: scratch.path)
      try #require(outcome.code == 0, "\(outcome.error)")
    }

    deinit { _ = umount2(path, CInt(MNT_DETACH)) }
  }

  @Test(.timeLimit(.minutes(4)))
  func aFullDiskIsToldToTheWriterAndLosesNothing() throws {
    let project = try Project()
    let machine = project.machine
    let disk = try SmallDisk(machine.scratch, megabytes: 24)
    let options = "max_age=1,bucket=album,data_dir=\(disk.path)/data,cache_dir=\(disk.path)/cache"
    project.emulator.createBucket("album")
    var random = SeededGenerator(seed: 3)
    try project.emulator.put("album", "old.bin", random.bytes(8 << 20))
    var contents: [Int: [UInt8]] = [:]
    for index in 0..<20 {
      let bytes = random.bytes(2 << 20)
      contents[index] = bytes
      try machine.scratch.file("outside/\(index).bin", bytes)
    }
    try project.mount(options)
    // A copy that fills a third of the disk: it is to make way.
    #expect(try project.read("old.bin").count == 8 << 20)
    #expect(
      try machine.bucketfs("ensure", project.path("old.bin")).code == 0)
    project.emulator.stop()

    var kept: [Int] = []
    var refusals: [String] = []
    for index in 0..<20 {
      let outcome = try machine.run(
        "cp", machine.scratch.path("outside/\(index).bin"), project.path("\(index).bin"))
      if outcome.code == 0 { kept.append(index) } else { refusals.append(outcome.error) }
    }
    #expect(kept.count >= 8, "copies make way for what is written: \(kept)")
    #expect(!refusals.isEmpty)
    #expect(refusals.allSatisfy { $0.contains("No space left on device") }, "\(refusals)")
    for index in kept { #expect(try project.read("\(index).bin") == contents[index]) }
    #expect(try machine.status()["state"] as? String == "serving")

    // Also a kill loses nothing, and the full disk does not keep the next mount from coming up.
    try machine.killMount()
    try project.mount(options)
    for index in kept { #expect(try project.read("\(index).bin") == contents[index]) }

    try project.emulator.start(port: project.port)
    #expect(try machine.bucketfs("online", machine.mountpoint).code == 0)
    let wait = try project.wait(120)
    #expect(wait.code == 3, "\(wait.error)")
    for index in kept { #expect(try project.stored("\(index).bin") == contents[index]) }
    // What its writer could not write to the end is kept, and not sent.
    let left = try machine.bucketfs("queue", machine.mountpoint, "--json")
    #expect(left.output.contains("\"no-room\""), "\(left.output)")
    // There is room again for what was refused.
    for index in 0..<20 where !kept.contains(index) {
      let outcome = try machine.run(
        "cp", machine.scratch.path("outside/\(index).bin"), project.path("\(index).bin"))
      #expect(outcome.code == 0, "\(outcome.error)")
      #expect([0, 3].contains(try project.wait(60).code))
      #expect(try project.stored("\(index).bin") == contents[index])
    }
    #expect(try project.wait(60).code == 0)
    try machine.unmount()
  }
}
