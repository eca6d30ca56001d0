import BucketStore
import Foundation
import PendingQueue
import Platform
import StorageEmulator
import TestSupport
import Testing

@testable import bucketfs

extension ProgramTests {
  /// What the verbs say of, and do with, files that the store does not have yet.
  @Suite struct Queue {
    private let emulator: StorageEmulator
    private let url: String
    private let person: Person

    init() throws {
      emulator = try StorageEmulator()
      emulator.createBucket("photos")
      url = "http://127.0.0.1:\(try emulator.start())"
      person = try Person()
      person.environment["SUPABASE_KEY"] = emulator.serviceKey
    }

    private var dataFolder: String { person.scratch.path("data/own") }

    /// Puts files into the queue, as a mount that was killed leaves them.
    private func leave(_ files: [(key: String, bytes: [UInt8])], owner: String? = nil) throws {
      let options = QueueOptions(directory: dataFolder, owner: owner ?? "supabase:\(url)")
      let queue = try PendingQueue(options, store: MemoryStore())
      for (key, bytes) in files {
        let object = ObjectName(bucket: "photos", key: ByteString(key))
        let file = try queue.create(object, NewFile(base: .absent))
        try bytes.withUnsafeBufferPointer { (buffer) throws(Errno) in
          try file.write(UnsafeRawBufferPointer(buffer), at: 0)
        }
        try file.flush()
        file.close()
      }
      queue.close()
    }

    private func mount(_ more: String...) throws -> Person.Outcome {
      try person.run(
        [
          Person.products + "/bucketfs", "mount", "supabase:\(url)", person.mountpoint, "-o",
          (["data_dir=\(dataFolder)"] + more).joined(separator: ","),
        ], timeout: 30)
    }

    private func records() throws -> [[String: Any]] {
      let outcome = try person.bucketfs("queue", person.mountpoint, "--json")
      try #require(outcome.code == 0, "\(outcome.error)")
      return try #require(
        JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]])
    }

    private func bytes(_ key: String) throws -> [UInt8]? {
      try emulator.bytes("photos", ByteString(key))
    }

    private func refuse(_ key: String, _ message: String) {
      emulator.setFault(
        Fault(
          route: "upload", key: ByteString(key),
          effect: .status(
            400,
            ["statusCode": "403", "error": "Unauthorized", "message": .string(message)])))
    }

    @Test func whatAnEarlierMountLeftIsToldAndSent() throws {
      try leave([("a.txt", [1, 2, 3]), ("b/c.txt", [4])])
      let outcome = try mount()
      #expect(outcome.code == 0, "\(outcome.error)")
      #expect(outcome.error.contains("2 files of an earlier mount wait to be uploaded"))
      let wait = try person.bucketfs("wait", person.mountpoint, "--json")
      #expect(wait.code == 0, "\(wait.error)")
      #expect(try wait.object()["outcome"] as? String == "stored")
      #expect(try bytes("a.txt") == [1, 2, 3])
      #expect(try bytes("b/c.txt") == [4])
      #expect(try records().isEmpty)
      let status = try #require(try person.status()["queue"] as? [String: Any])
      #expect(status["waiting"] as? Int == 0)
      #expect(status["uploading"] as? Int == 0)
      #expect(status["failed"] as? Int == 0)
      #expect(try File.contents(of: person.mountpoint + "/photos/b/c.txt") == [4])
      try person.unmount()
      let again = try mount()
      #expect(again.error == "")
      try person.unmount()
    }

    @Test func withoutTheNetworkEverythingWaitsAndIsListed() throws {
      try leave([("a.txt", [1, 2, 3]), ("b/c.txt", [4])])
      emulator.stop()
      #expect(try mount().code == 0)
      let list = try records()
      #expect(list.map { $0["object_path"] as? String } == ["a.txt", "b/c.txt"])
      #expect(list.map { $0["state"] as? String } == ["waiting", "waiting"])
      #expect(list.map { $0["size"] as? Int } == [3, 1])
      #expect(list.map { $0["operation"] as? String } == ["put", "put"])
      #expect(list[1]["path"] as? String == person.mountpoint + "/photos/b/c.txt")
      #expect(list.allSatisfy { $0["attempts"] as? Int == 0 })
      let text = try person.bucketfs("queue", person.mountpoint)
      #expect(text.output.hasPrefix("STATE "))
      #expect(text.output.contains("/photos/a.txt"))
      let status = try #require(try person.status()["queue"] as? [String: Any])
      #expect(status["waiting"] as? Int == 2)
      let wait = try person.bucketfs("wait", person.mountpoint)
      #expect(wait.code == 4)
      #expect(wait.error.contains("2 files not uploaded: the store cannot be reached"))
      let unmount = try person.bucketfs("unmount", person.mountpoint, "--wait")
      #expect(unmount.code == 4)
      #expect(unmount.error.contains("stays mounted"))
      #expect(person.isMounted)
      let plain = try person.bucketfs("unmount", person.mountpoint, "--json")
      #expect(plain.code == 0)
      #expect(plain.error.contains("2 files not uploaded yet: kept on this device"))
      #expect((try plain.object()["queue"] as? [String: Any])?["waiting"] as? Int == 2)
    }

    @Test func whatAPersonHasSwitchedOffStaysOffWhateverEndsTheMount() throws {
      try leave([("a.txt", [1, 2, 3])])
      emulator.setFault(Fault(route: "upload", effect: .status(503, ["message": "later"])))
      #expect(try mount().code == 0)
      #expect(try person.bucketfs("offline", person.mountpoint).code == 0)
      let pid = try person.pid()
      kill(pid, SIGKILL)
      for _ in 0..<500 where kill(pid, 0) == 0 { usleep(10_000) }
      emulator.clearFaults()
      emulator.requests.clear()
      let again = try mount()
      #expect(again.code == 0)
      #expect(again.error.contains("network access is switched off"), "\(again.error)")
      #expect(try person.status()["network"] as? String == "disabled")
      let text = try person.bucketfs("status", person.mountpoint).output
      #expect(text.contains("disabled: switched off; bucketfs online"), "\(text)")
      let wait = try person.bucketfs("wait", person.mountpoint, "--timeout", "1")
      #expect(wait.code == 4)
      #expect(wait.error.contains("not uploaded: network access is switched off\n"))
      #expect(wait.error.contains("hint: bucketfs online \(person.mountpoint)"), "\(wait.error)")
      #expect(emulator.requests.entries().isEmpty)
      #expect(try person.bucketfs("online", person.mountpoint).code == 0)
      #expect(try person.bucketfs("wait", person.mountpoint).code == 0)
      #expect(try bytes("a.txt") == [1, 2, 3])
      try person.unmount()
      let last = try mount()
      #expect(last.error == "")
      try person.unmount()
    }

    @Test func withSyncRemoteTheStoreHasWhatWasClosed() throws {
      #expect(try mount("sync=remote").code == 0)
      let file = person.mountpoint + "/photos/a.txt"
      let copied = try person.run(["/bin/sh", "-c", "echo one > '\(file)'"], timeout: 30)
      #expect(copied.code == 0, "\(copied.error)")
      #expect(try bytes("a.txt") == Array("one\n".utf8))
      #expect(try person.bucketfs("offline", person.mountpoint).code == 0)
      let refused = try person.run(["/bin/cp", "/etc/hostname", file + "2"], timeout: 30)
      #expect(refused.code == 1)
      #expect(refused.error.contains("Network is down"), "\(refused.error)")
      #expect(try records().map { $0["state"] as? String } == ["waiting"])
      #expect(try person.bucketfs("online", person.mountpoint).code == 0)
      #expect(try person.bucketfs("wait", person.mountpoint).code == 0)
      #expect(try bytes("a.txt2") != nil)
      try person.unmount()
    }

    @Test func aPendingFileIsAskedAboutLikeAnyOther() throws {
      try leave([("a.txt", [1, 2, 3])])
      emulator.stop()
      #expect(try mount().code == 0)
      let path = person.mountpoint + "/photos/a.txt"
      for verb in ["cached", "ensure"] {
        let report = try person.bucketfs(verb, path, "--json").object()
        #expect(report["size"] as? Int == 3)
        #expect(try File.contents(of: try #require(report["copy"] as? String)) == [1, 2, 3])
      }
      let info = try person.bucketfs("info", path, "--json").object()
      #expect(info["state"] as? String == "waiting")
      #expect(info["key"] as? String == "a.txt")
      #expect((info["pending"] as? [String: Any])?["state"] as? String == "waiting")
      #expect(try person.bucketfs("info", path).output.contains("  state     waiting\n"))
      try person.unmount()
    }

    @Test func aRefusedFileIsNamedWithTheReasonAndKept() throws {
      try leave([("bad.txt", [1]), ("good.txt", [2])])
      refuse("bad.txt", "new row violates row-level security policy")
      #expect(try mount().code == 0)
      let wait = try person.bucketfs("wait", person.mountpoint)
      #expect(wait.code == 3)
      #expect(wait.error.contains("\(person.mountpoint)/photos/bad.txt: "))
      #expect(wait.error.contains("row-level security"))
      #expect(wait.error.contains("hint: see that you may write there, then bucketfs retry"))
      #expect(try bytes("good.txt") == [2])
      let record = try #require(try records().first)
      #expect(record["state"] as? String == "failed")
      #expect(record["kind"] as? String == "refused")
      #expect(record["retryable"] as? Bool == false)
      #expect(record["attempts"] as? Int == 1)
      let status = try person.bucketfs("status", person.mountpoint)
      #expect(status.output.contains("1 failed"))
      #expect(status.output.contains("shows why 1 file could not be uploaded"))
      // Told again by who takes it away, and by who mounts again.
      let unmount = try person.bucketfs("unmount", person.mountpoint)
      #expect(unmount.error.contains("1 file could not be uploaded: kept on this device"))
      let again = try mount()
      #expect(again.code == 0)
      #expect(again.error.contains("1 file could not be uploaded, and is kept on this device"))
      #expect(try records().map { $0["state"] as? String } == ["failed"])
      emulator.clearFaults()
      let retry = try person.bucketfs("retry", person.mountpoint + "/photos/bad.txt")
      #expect(retry.code == 0, "\(retry.error)")
      #expect(retry.output.contains("1 file tried again"))
      #expect(try person.bucketfs("wait", person.mountpoint).code == 0)
      #expect(try bytes("bad.txt") == [1])
      try person.unmount()
    }

    @Test func removeGivesUpWhatIsPendingAndNothingElse() throws {
      try emulator.put("photos", "stored.txt", [9])
      try leave([("a.txt", [1]), ("d/b.txt", [2]), ("d/c.txt", [3])])
      #expect(try mount("ro").error.contains("3 files in \(dataFolder)/pending are not stored yet"))
      #expect(try person.bucketfs("wait", person.mountpoint).code == 4)
      try person.unmount()
      emulator.setFault(Fault(route: "upload", times: -1, effect: .hang))
      #expect(try mount().code == 0)
      let folder = person.mountpoint + "/photos"
      let whole = try person.bucketfs("remove", person.mountpoint)
      #expect(whole.code == 2)
      #expect(whole.error.contains("clear --pending"))
      let stored = try person.bucketfs("remove", folder + "/stored.txt")
      #expect(stored.code == 1)
      #expect(stored.error.contains("nothing of it is pending"))
      let removed = try person.bucketfs("remove", folder + "/d", "--json")
      #expect(removed.code == 0, "\(removed.error)")
      #expect(try removed.object()["files"] as? Int == 2)
      // The mount knows at once.
      var facts = stat()
      #expect(stat(folder + "/d/b.txt", &facts) != 0)
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [
          "a.txt", "stored.txt",
        ])
      emulator.clearFaults()
      #expect(try person.bucketfs("retry", person.mountpoint).code == 0)
      #expect(try person.bucketfs("wait", person.mountpoint, "--timeout", "30s").code == 0)
      #expect(try bytes("a.txt") == [1])
      #expect(try bytes("d/b.txt") == nil)
      #expect(try bytes("stored.txt") == [9])
      try person.unmount()
    }

    @Test func waitingEndsWhenTheTimeIsOver() throws {
      try leave([("a.txt", [1])])
      emulator.setFault(Fault(route: "upload", times: -1, effect: .hang))
      #expect(try mount("timeout=60s").code == 0)
      let wait = try person.bucketfs("wait", person.mountpoint, "--timeout", "500ms", "--json")
      #expect(wait.code == 4)
      #expect(wait.error.contains("the time is over, and 1 file not uploaded yet"))
      #expect(try wait.object()["outcome"] as? String == "timeout")
      emulator.clearFaults()
      try person.unmount()
    }

    @Test func watchingGoesOnUntilAllIsStored() throws {
      try leave((0..<5).map { ("\($0).txt", [UInt8($0)]) })
      emulator.setFault(Fault(route: "upload", times: -1, effect: .delay(.milliseconds(300))))
      #expect(try mount("uploads=1").code == 0)
      let watch = try person.bucketfs("queue", person.mountpoint, "--watch")
      #expect(watch.code == 0, "\(watch.error)")
      #expect(watch.output.contains("1 uploading"))
      #expect(watch.output.hasSuffix("0 waiting, 0 uploading, 0 failed\n"))
      for index in 0..<5 { #expect(try bytes("\(index).txt") == [UInt8(index)]) }
      let order = emulator.requests.entries().filter { $0.route == "upload" }.map {
        $0.key?.description ?? ""
      }
      #expect(order == (0..<5).map { "\($0).txt" })
      try person.unmount()
    }

    @Test func filesOfAnotherAccountAreToldAndNeverSent() throws {
      try leave([("a.txt", [1])], owner: "supabase:\(url)#somebody")
      let outcome = try mount()
      #expect(outcome.code == 0)
      #expect(outcome.error.contains("1 file in \(dataFolder)/pending belongs to another account"))
      #expect(try person.bucketfs("wait", person.mountpoint).code == 0)
      #expect(try records().isEmpty)
      #expect((try person.status()["queue"] as? [String: Any])?["others"] as? Int == 1)
      #expect(try bytes("a.txt") == nil)
      try person.unmount()
      try leave([], owner: "supabase:\(url)#somebody")
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: dataFolder + "/pending")
          .count { $0.hasSuffix(".json") } == 1)
    }

    @Test func aQueueInUseIsRefused() throws {
      try leave([])
      let other = try PendingQueue(
        QueueOptions(directory: dataFolder, owner: "x"), store: MemoryStore())
      let outcome = try mount()
      #expect(outcome.code == 5)
      #expect(outcome.error.contains("the pending uploads in \(dataFolder)/pending are in use"))
      #expect(outcome.error.contains("hint: unmount it there first"))
      other.close()
      #expect(try mount().code == 0, "the cache was let go")
      try person.unmount()
    }

    @Test func clearKeepsWhatIsPendingUnlessTold() throws {
      try emulator.put("photos", "stored.txt", Array(repeating: 9, count: 5000))
      try leave([("a.txt", [1])])
      refuse("a.txt", "no")
      #expect(try mount().code == 0)
      #expect(try person.bucketfs("wait", person.mountpoint).code == 3)
      let stored = person.mountpoint + "/photos/stored.txt"
      #expect(try File.contents(of: stored).count == 5000)
      #expect(try person.bucketfs("cached", stored).code == 0)
      let clear = try person.bucketfs("clear", person.mountpoint, "--json")
      #expect(clear.code == 0, "\(clear.error)")
      #expect(try clear.object()["pending"] as? Int == 0)
      #expect(try clear.object()["before"] as? Int == 5000)
      #expect(try clear.object()["after"] as? Int == 0)
      #expect(try person.bucketfs("cached", stored).code == 1)
      #expect(try records().count == 1)
      #expect(try File.contents(of: stored).count == 5000)
      #expect(
        try person.bucketfs("clear", person.mountpoint, "--pending").output.contains("1 file"))
      #expect(try records().isEmpty)
      try person.unmount()
    }

    @Test func unmountingDoesNotWaitForAnUploadThatHangs() throws {
      try leave([("a.txt", [1])])
      emulator.setFault(Fault(route: "upload", times: -1, effect: .hang))
      #expect(try mount("timeout=60s").code == 0)
      #expect(eventually { (try? records().first?["state"] as? String) == "uploading" })
      let start = Instant.now
      let outcome = try person.bucketfs("unmount", person.mountpoint)
      #expect(outcome.code == 0, "\(outcome.error)")
      #expect(outcome.error.contains("1 file not uploaded yet"))
      #expect(Instant.now.since(start) < .seconds(20))
      emulator.clearFaults()
      #expect(try mount().code == 0)
      #expect(
        try person.bucketfs("unmount", person.mountpoint, "--wait", "--timeout=60s").code == 0)
      #expect(try bytes("a.txt") == [1])
    }

    @Test func aBadTimeIsRefused() throws {
      let outcome = try person.bucketfs("wait", person.mountpoint, "--timeout", "soon")
      #expect(outcome.code == 2)
      #expect(outcome.error.contains("--timeout: soon is not a time"))
    }
  }
}
