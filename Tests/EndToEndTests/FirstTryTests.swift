import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// What a person sees on the first day: photos online, then without a network, then online again.
@Suite(.serialized) struct FirstTryTests {
  private func photo(_ seed: UInt64, _ size: Int = 3 << 20) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return random.bytes(size)
  }

  private func errno(_ body: () throws -> Void) -> Errno? {
    do {
      try body()
      return nil
    } catch let error as Errno {
      return error
    } catch {
      Issue.record("\(error)")
      return nil
    }
  }

  @Test(.timeLimit(.minutes(3)))
  func aPhotoOpenedOnceIsReadAgainWhenTheStoreIsGone() throws {
    let project = try Project()
    let first = photo(1)
    project.emulator.createBucket("album")
    try project.emulator.put("album", "2024/one.jpg", first)
    try project.emulator.put("album", "2024/two.jpg", photo(2))
    try project.mount()

    let listing = try project.machine.shell(#"ls -la "$M/album/2024""#)
    #expect(listing.code == 0)
    #expect(listing.output.contains("one.jpg") && listing.output.contains("two.jpg"))
    #expect(try project.read("album/2024/one.jpg") == first)

    project.emulator.stop()
    sleep(2)
    #expect(try project.read("album/2024/one.jpg") == first)
    #expect(errno { _ = try project.read("album/2024/two.jpg") } == .networkUnreachable)
    // The best of a few, since the machine may be busy with something else.
    let refusals = (0..<5).map { _ in
      let start = Instant.now
      #expect(errno { _ = try project.read("album/2024/two.jpg") } == .networkUnreachable)
      return Instant.now.since(start)
    }
    #expect(try #require(refusals.min()) < .milliseconds(100))
    #expect(try project.machine.shell(#"ls "$M/album/2024""#).output == "one.jpg\ntwo.jpg\n")
    #expect(try project.machine.status()["network"] as? String == "offline")

    let changed = photo(3, 1 << 20)
    try project.emulator.put("album", "2024/one.jpg", changed)
    try project.emulator.start(port: project.port)
    #expect(try project.machine.bucketfs("online", project.machine.mountpoint).code == 0)
    sleep(2)
    #expect(try project.read("album/2024/one.jpg") == changed)
    #expect(try project.read("album/2024/two.jpg") == photo(2))
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func aMountMadeWithoutANetworkShowsWhatWasKept() throws {
    let project = try Project()
    let bytes = photo(4, 100_000)
    project.emulator.createBucket("album")
    try project.emulator.put("album", "a/b.jpg", bytes)
    try project.mount()
    #expect(try project.read("album/a/b.jpg") == bytes)
    try project.machine.unmount()

    project.emulator.stop()
    try project.mount()
    #expect(try project.tree() == ["album/", "album/a/", "album/a/b.jpg"])
    #expect(try project.read("album/a/b.jpg") == bytes)
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func withNetworkAccessSwitchedOffNothingIsSent() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    try project.emulator.put("album", "kept.jpg", photo(5, 1000))
    try project.emulator.put("album", "other.jpg", photo(6, 1000))
    try project.mount("max_age=0")
    #expect(try project.read("album/kept.jpg") == photo(5, 1000))
    #expect(try project.machine.bucketfs("offline", project.machine.mountpoint).code == 0)
    project.emulator.requests.clear()
    #expect(try project.read("album/kept.jpg") == photo(5, 1000))
    #expect(errno { _ = try project.read("album/other.jpg") } == .networkDown)
    #expect(try project.machine.shell(#"ls "$M/album""#).output == "kept.jpg\nother.jpg\n")
    #expect(project.emulator.requests.entries().count == 0)
    #expect(try project.machine.bucketfs("online", project.machine.mountpoint).code == 0)
    #expect(try project.read("album/other.jpg") == photo(6, 1000))
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func whatMayNotBeSeenIsRefusedAndWhatIsWrittenIsRefused() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    try project.emulator.put("album", "a.jpg", photo(7, 1000))
    project.emulator.setFault(
      Fault(
        route: "object",
        effect: .status(
          400,
          [
            "statusCode": "403", "error": "Unauthorized", "code": "AccessDenied",
            "message": "new row violates row-level security policy",
          ])))
    try project.mount("max_age=1,ro")
    #expect(errno { _ = try project.read("album/a.jpg") } == .permission)
    project.emulator.clearFaults()
    for line in [
      #"echo x > "$M/album/new""#, #"mkdir "$M/album/dir""#, #"rm "$M/album/a.jpg""#,
      #"mv "$M/album/a.jpg" "$M/album/b.jpg""#, #"ln -s x "$M/album/link""#,
    ] {
      let outcome = try project.machine.shell(line)
      #expect(outcome.code != 0)
      #expect(outcome.error.contains("Read-only file system"), "\(line): \(outcome.error)")
    }
    #expect(project.emulator.keys("album") == ["a.jpg"])
    try project.machine.unmount()
  }
}
