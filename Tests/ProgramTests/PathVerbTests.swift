import Foundation
import Platform
import TestSupport
import Testing

@testable import bucketfs

extension ProgramTests {
  /// What the verbs say of objects.
  @Suite struct Objects {
    @Test func cachedTellsTheCopyAndNeverFetchesOne() throws {
      let person = try Person()
      try person.mount()
      let path = person.mountpoint + "/photos/2024/may.jpg"
      let before = try person.bucketfs("cached", path)
      #expect(before.code == 1)
      #expect(before.output == "")
      #expect(before.error.contains("no copy is kept on this device"))
      #expect(try File.contents(of: path).count == 12)
      let after = try person.bucketfs("cached", path)
      #expect(after.code == 0)
      let fields = after.output.dropLast().split(separator: "\t").map(String.init)
      #expect(fields.count == 3)
      #expect(try File.contents(of: fields[0]) == Array("a photograph".utf8))
      #expect(fields[0].hasPrefix(person.scratch.path("cache/bucketfs/")))
      #expect(fields[2] == "12")
      let report = try person.bucketfs("cached", path, "--json").object()
      #expect(report.keys.sorted() == ["copy", "fetched_at", "path", "size"])
      #expect(report["copy"] as? String == fields[0])
      #expect(report["fetched_at"] as? String == fields[1])
      #expect(report["path"] as? String == path)
      #expect(report["size"] as? Int == 12)
      try person.unmount()
    }

    @Test func ensureFetchesACopyWhenThereIsNone() throws {
      let person = try Person()
      try person.mount()
      let path = person.mountpoint + "/photos/a b.txt"
      let report = try person.bucketfs("ensure", path, "--json").object()
      let copy = try #require(report["copy"] as? String)
      #expect(try File.contents(of: copy) == Array("hello".utf8))
      #expect(try person.bucketfs("cached", path, "--json").object()["copy"] as? String == copy)
      try person.unmount()
    }

    @Test func infoTellsAllThatIsKnown() throws {
      let person = try Person()
      try person.mount()
      let path = person.mountpoint + "/photos/a b.txt"
      var report = try person.bucketfs("info", path, "--json").object()
      #expect(report["bucket"] as? String == "photos")
      #expect(report["key"] as? String == "a b.txt")
      #expect(report["state"] as? String == "remote")
      #expect(report["confirmed"] as? Bool == true)
      #expect(report["size"] as? Int == 5)
      #expect(report["copy"] is NSNull)
      #expect(try person.bucketfs("ensure", path).code == 0)
      report = try person.bucketfs("info", path, "--json").object()
      #expect(report["state"] as? String == "cached")
      #expect(report["copy"] is String)
      let text = try person.bucketfs("info", path).output
      #expect(text.contains("  state     cached\n"))
      try person.unmount()
    }

    @Test func aFolderIsToldFromAnObjectThatIsMissing() throws {
      let person = try Person()
      try person.mount()
      _ = try FileManager.default.contentsOfDirectory(atPath: person.mountpoint + "/photos")
      for verb in ["cached", "ensure", "info"] {
        let folder = try person.bucketfs(verb, person.mountpoint + "/photos/2024")
        #expect(folder.code == 1)
        #expect(folder.error.contains("2024 is a folder, not an object"))
        let missing = try person.bucketfs(verb, person.mountpoint + "/photos/2025")
        #expect(missing.code == 1)
        #expect(!missing.error.contains("folder, not an object"))
      }
      try person.unmount()
    }

    @Test func severalPathsHaveAnAnswerEachAndTheWorstCode() throws {
      let person = try Person()
      try person.mount()
      let folder = person.mountpoint + "/photos"
      let outcome = try person.bucketfs(
        "ensure", folder + "/a b.txt", folder + "/missing", folder, folder + "/../x",
        folder + "/2024/may.jpg", "--json")
      #expect(outcome.code == 2)
      let answers = try outcome.objects()
      #expect(answers.map { $0["exit"] as? Int } == [nil, 1, 1, 2, nil])
      #expect(answers.map { $0["size"] as? Int } == [5, nil, nil, nil, 12])
      try person.unmount()
    }

    @Test func pathsAreRelativeToTheWorkingFolderAndFollowLinksToTheMount() throws {
      let person = try Person()
      try person.mount()
      try FileManager.default.createSymbolicLink(
        atPath: person.scratch.path("link"), withDestinationPath: "mnt/photos")
      for path in ["mnt/photos/a b.txt", "./mnt//photos/a b.txt", "link/a b.txt"] {
        let report = try person.bucketfs("info", path, "--json").object()
        #expect(report["path"] as? String == person.mountpoint + "/photos/a b.txt")
      }
      // From within the mount, where leading dots lead out of the folder.
      let program = Person.products + "/bucketfs"
      let line = "cd '\(person.mountpoint)/photos/2024' && '\(program)' info '../a b.txt' --json"
      let report = try person.run(["/bin/sh", "-c", line]).object()
      #expect(report["key"] as? String == "a b.txt")
      try person.unmount()
    }

    @Test func whatWasReadIsToldWithNetworkAccessSwitchedOff() throws {
      let person = try Person()
      try person.mount()
      let folder = person.mountpoint + "/photos"
      #expect(try File.contents(of: folder + "/a b.txt").count == 5)
      _ = try FileManager.default.contentsOfDirectory(atPath: folder + "/2024")
      #expect(try person.bucketfs("offline", person.mountpoint).code == 0)
      #expect(try person.status()["network"] as? String == "disabled")
      #expect(try person.bucketfs("cached", folder + "/a b.txt").code == 0)
      #expect(try person.bucketfs("ensure", folder + "/a b.txt").code == 0)
      #expect(try File.contents(of: folder + "/a b.txt") == Array("hello".utf8))
      let unread = try person.bucketfs("ensure", folder + "/2024/may.jpg")
      #expect(unread.code == 4)
      #expect(unread.error.contains("hint: bucketfs online"))
      do throws(Errno) {
        _ = try File.contents(of: folder + "/2024/may.jpg")
        Issue.record("read without the network")
      } catch {
        #expect(error == .networkDown)
      }
      let report = try person.bucketfs("info", folder + "/2024/may.jpg", "--json").object()
      #expect(report["confirmed"] as? Bool == false)
      #expect(report["size"] as? Int == 12)
      let online = try person.bucketfs("online", person.mountpoint, "--json")
      #expect(online.code == 0)
      #expect(try online.object()["network"] as? String == "online")
      #expect(try person.bucketfs("ensure", folder + "/2024/may.jpg").code == 0)
      try person.unmount()
    }

    @Test func keysThatAreNoPathsAreListedWithTheReason() throws {
      let person = try Person()
      try person.scratch.file("store/photos/back\\slash", [])
      try person.scratch.file("store/photos/line\nfeed", [])
      try person.mount()
      let names = try FileManager.default.contentsOfDirectory(
        atPath: person.mountpoint + "/photos")
      #expect(names.sorted() == ["2024", "a b.txt"])
      #expect(try person.status()["hidden_keys"] as? Int == 2)
      let outcome = try person.bucketfs("unreachable", person.mountpoint, "--json")
      #expect(outcome.code == 0)
      let keys = try outcome.objects()
      #expect(keys.map { $0["key"] as? String } == ["back\\slash", "line\\x0afeed"])
      for key in keys {
        #expect(key["bucket"] as? String == "photos")
        #expect(key["reason"] as? String == "a control character or a backslash")
      }
      try person.unmount()
    }

    @Test func twoMountsNeverShareACache() throws {
      let person = try Person()
      try person.mount()
      let other = try person.scratch.folder("other")
      let outcome = try person.bucketfs("mount", person.source, other)
      #expect(outcome.code == 5)
      #expect(outcome.error.contains("is in use by process \(try person.pid())"))
      #expect(outcome.error.contains("mounted at \(person.mountpoint)"))
      #expect(outcome.error.contains("choose another cache_dir"))
      let cache = "cache_dir=\(person.scratch.path("own"))"
      let shared = try person.bucketfs("mount", person.source, other, "-o", cache)
      #expect(shared.code == 5)
      #expect(shared.error.contains("the pending uploads in "))
      let data = "data_dir=\(person.scratch.path("data/own"))"
      let own = try person.bucketfs("mount", person.source, other, "-o", "\(cache),\(data)")
      #expect(own.code == 0, "\(own.error)")
      let both = try person.bucketfs("status", "--json").objects()
      #expect(
        Set(both.compactMap { $0["mountpoint"] as? String }).isSuperset(of: [
          person.mountpoint, other,
        ]))
      #expect(try person.bucketfs("unmount", other).code == 0)
      try person.unmount()
      try person.mount()
      try person.unmount()
    }
  }
}
