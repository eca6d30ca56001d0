import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// The program killed at random: what the cache holds afterwards is whole and right.
@Suite(.serialized) struct KillTests {
  @Test(.timeLimit(.minutes(10)))
  func aKillDuringColdReadsLeavesOnlyWholeRightCopies() throws {
    let project = try Project()
    let machine = project.machine
    project.emulator.createBucket("album")
    var random = SeededGenerator(seed: 42)
    var contents: [String: [UInt8]] = [:]
    for index in 0..<200 {
      let bytes = random.bytes(Int.random(in: 1...300_000, using: &random))
      contents["photo-\(index).jpg"] = bytes
      try project.emulator.put("album", ByteString("photo-\(index).jpg"), bytes)
    }
    let names = contents.keys.sorted()
    var next = 0
    while next < names.count {
      try project.mount("max_age=1")
      let pid = try machine.pid()
      let batch = names[next..<min(next + 20, names.count)].map { project.path("album/\($0)") }
      let reader = try Thread(name: "reader") {
        // The kill ends these reads with an error; only what the cache keeps is looked at.
        for path in batch { _ = (try? File.contents(of: path))?.count }
      }
      usleep(UInt32.random(in: 1000...150_000, using: &random))
      kill(pid, SIGKILL)
      reader.join()
      for _ in 0..<500 where kill(pid, 0) == 0 { usleep(10_000) }
      next += 20
    }

    project.emulator.stop()
    try project.mount("max_age=1")
    var kept = 0
    for (name, bytes) in contents {
      let outcome = try machine.bucketfs("cached", project.path("album/\(name)"))
      if outcome.code == 0 { kept += 1 }
      do {
        #expect(try project.read("album/\(name)") == bytes, "\(name)")
      } catch let error as Errno {
        #expect(error == .networkUnreachable || error == .noEntry, "\(name): \(error)")
      }
    }
    #expect(kept > 0)
    try machine.unmount()
  }
}
