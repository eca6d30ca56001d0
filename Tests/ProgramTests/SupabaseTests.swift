import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

@testable import bucketfs

extension ProgramTests {
  /// A project at the end of real HTTP.
  @Suite struct Supabase {
    private let emulator: StorageEmulator
    private let url: String

    init() throws {
      emulator = try StorageEmulator()
      emulator.createBucket("photos")
      try emulator.put("photos", "2024/may.jpg", Array("a photograph".utf8))
      url = "http://127.0.0.1:\(try emulator.start())"
    }

    private func person() throws -> Person {
      let person = try Person()
      person.environment["SUPABASE_KEY"] = emulator.serviceKey
      return person
    }

    private func mount(_ person: Person, _ words: String...) throws -> Person.Outcome {
      try person.run(
        [Person.products + "/bucketfs", "mount"] + words + [person.mountpoint], timeout: 30)
    }

    @Test func aProjectIsMountedWithTheEnvironmentsKey() throws {
      let person = try person()
      #expect(try mount(person, "supabase:\(url)").code == 0)
      let path = person.mountpoint + "/photos/2024/may.jpg"
      #expect(try File.contents(of: path) == Array("a photograph".utf8))
      let status = try person.status()
      #expect(status["network"] as? String == "online")
      #expect(status["network_reason"] is NSNull)
      #expect(status["session"] as? String == "keyOnly")
      #expect(status["store"] as? String == "supabase:\(url)")
      #expect((status["cache"] as? [String: Any])?["files"] as? Int == 1)
      try person.unmount()
    }

    @Test func aProfileIsMountedByItsName() throws {
      let person = try Person()
      try person.configure(
        "[bucketfs]\nstore = supabase\nurl = \(url)\nkey = \(emulator.serviceKey)\n"
          + "bucket = photos\n")
      #expect(try mount(person).code == 0)
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: person.mountpoint) == ["2024"])
      #expect(try person.status()["source"] as? String == "bucketfs")
      try person.unmount()
    }

    @Test func withoutAProfileTheEnvironmentNamesTheProject() throws {
      let person = try person()
      person.environment["SUPABASE_URL"] = url
      #expect(try mount(person).code == 0)
      try person.unmount()
    }

    @Test func aKeyThatIsForAnotherProjectIsKeptBackAndItIsSaidWhy() throws {
      let person = try person()
      person.environment["SUPABASE_URL"] = "https://other.supabase.co"
      let outcome = try mount(person, "supabase:\(url)")
      #expect(outcome.code == 2)
      #expect(
        outcome.error.contains("SUPABASE_KEY is for SUPABASE_URL, which is https://other"),
        "\(outcome.error)")
    }

    @Test func credentialsAreShownNowhere() throws {
      let person = try person()
      person.environment["SUPABASE_ACCESS_TOKEN"] = emulator.serviceKey
      #expect(try mount(person, "supabase:\(url)", "-o", "log_level=debug").code == 0)
      let pid = try person.pid()
      _ = try FileManager.default.contentsOfDirectory(atPath: person.mountpoint + "/photos")
      let log = try #require(try person.status()["log"] as? String)
      let shown =
        try person.bucketfs("status", person.mountpoint).output
        + person.bucketfs("status", person.mountpoint, "--json").output
        + person.bucketfs("info", person.mountpoint + "/photos/2024/may.jpg").output
        + String(contentsOfFile: log, encoding: .utf8)
        + String(contentsOfFile: "/proc/\(pid)/cmdline", encoding: .utf8)
        + String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
      let secret = try #require(emulator.serviceKey.split(separator: ".").last)
      #expect(!shown.contains(secret))
      try person.unmount()
      // Nor in any file that is left behind.
      let search = try person.run(
        ["/usr/bin/grep", "-r", "-l", "-e", String(secret), person.scratch.path])
      #expect(search.code == 1, "\(search.output)")
    }

    @Test func aWrongKeyIsRefused() throws {
      let person = try person()
      person.environment["SUPABASE_KEY"] = "sb_publishable_wrong"
      let outcome = try mount(person, "supabase:\(url)")
      #expect(outcome.code == 5)
      #expect(outcome.error.contains("the store refuses us"))
      #expect(outcome.error.contains("hint: check the key"))
      #expect(!outcome.error.contains("sb_publishable_wrong"))
      #expect(!person.isMounted)
    }

    @Test func noKeyIsTold() throws {
      let outcome = try mount(try Person(), "supabase:\(url)")
      #expect(outcome.code == 2)
      #expect(outcome.error.contains("there is no key for \(url)"))
      #expect(outcome.error.contains("hint: set SUPABASE_KEY"))
    }

    @Test func aMissingBucketIsTold() throws {
      let outcome = try mount(try person(), "supabase:\(url)/music")
      #expect(outcome.code == 1)
      #expect(outcome.error.contains("there is no bucket music"))
    }

    @Test func aMissingFolderIsToldAndMountedAllTheSame() throws {
      let person = try person()
      let outcome = try mount(person, "supabase:\(url)/photos/2025")
      #expect(outcome.code == 0)
      #expect(outcome.error.contains("there is nothing below 2025/ in the bucket photos"))
      #expect(outcome.error.contains("hint: it is mounted all the same"))
      #expect(try FileManager.default.contentsOfDirectory(atPath: person.mountpoint).isEmpty)
      try person.unmount()
      let there = try mount(person, "supabase:\(url)/photos/2024")
      #expect(there.code == 0)
      #expect(there.error == "")
      try person.unmount()
    }

    @Test func thatThereIsNoBucketIsTold() throws {
      let empty = try StorageEmulator()
      let person = try Person()
      person.environment["SUPABASE_KEY"] = empty.serviceKey
      let outcome = try mount(person, "supabase:http://127.0.0.1:\(try empty.start())")
      #expect(outcome.code == 0)
      #expect(outcome.error.contains("there is no bucket to show"))
      #expect(outcome.error.contains("-o bucket=NAME"))
      #expect(try FileManager.default.contentsOfDirectory(atPath: person.mountpoint).isEmpty)
      try person.unmount()
      empty.stop()
    }

    @Test func aMountWithoutTheNetworkComesUpAndSaysSo() throws {
      let person = try person()
      #expect(try mount(person, "supabase:\(url)").code == 0)
      let path = person.mountpoint + "/photos/2024/may.jpg"
      #expect(try File.contents(of: path).count == 12)
      try person.unmount()
      emulator.stop()
      let outcome = try mount(person, "supabase:\(url)")
      #expect(outcome.code == 0)
      #expect(outcome.error.contains("the store cannot be reached"))
      #expect(outcome.error.contains("hint: it is mounted all the same"))
      #expect(outcome.error.components(separatedBy: "bucketfs: ").count == 2, "said once")
      let status = try person.status()
      #expect(status["network"] as? String == "offline")
      #expect(status["network_reason"] is String)
      #expect(try File.contents(of: path) == Array("a photograph".utf8))
      let online = try person.bucketfs("online", person.mountpoint)
      #expect(online.code == 4)
      #expect(online.error.contains("the store cannot be reached"))
      try person.unmount()
    }

    @Test func aStoreThatIsSilentHoldsTheMountUpForSecondsOnly() throws {
      let person = try person()
      let silent = try RawServer { connection in
        while connection.readRequest() != nil { connection.hold() }
      }
      let start = Instant.now
      let outcome = try mount(person, "supabase:\(silent.url)", "-o", "timeout=1s")
      #expect(outcome.code == 0, "\(outcome.error)")
      #expect(outcome.error.contains("the store cannot be reached"))
      #expect(Instant.now.since(start) < .seconds(15))
      try person.unmount()
    }

    @Test func plainHTTPGoesToThisMachineAlone() throws {
      let outcome = try mount(try person(), "supabase:http://192.0.2.1")
      #expect(outcome.code == 2)
      #expect(outcome.error.contains("plain http to 192.0.2.1 is refused"))
    }

    @Test func aPersonsHeaderIsSentWithEveryRequest() throws {
      let person = try person()
      #expect(
        try mount(person, "supabase:\(url)", "-o", "header.X-Trace=\"a,b\"").code == 0)
      _ = try FileManager.default.contentsOfDirectory(atPath: person.mountpoint + "/photos")
      try person.unmount()
      let requests = emulator.requests.entries()
      #expect(!requests.isEmpty)
      #expect(requests.allSatisfy { $0.headers["x-trace"] == "a,b" })
    }

    @Test func anAbandonedDownloadIsStopped() throws {
      let person = try person()
      #expect(try mount(person, "supabase:\(url)").code == 0)
      emulator.setFault(
        Fault(method: "GET", route: "object", effect: .hang))
      let running = try person.start(
        [
          Person.products + "/bucketfs", "ensure", person.mountpoint + "/photos/2024/may.jpg",
        ])
      usleep(300_000)
      kill(running.pid, SIGKILL)
      _ = try running.wait()
      #expect(try person.bucketfs("status", person.mountpoint).code == 0)
      try person.unmount()
      emulator.clearFaults()
    }
  }
}
