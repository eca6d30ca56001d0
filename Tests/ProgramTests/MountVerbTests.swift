import Foundation
import Platform
import TestSupport
import Testing

@testable import bucketfs

extension ProgramTests {
  @Suite struct Mounting {
    @Test func aMountGoesIntoTheBackgroundAndIsUsableAtOnce() throws {
      let person = try Person()
      let outcome = try person.bucketfs("mount", person.source, person.mountpoint, "--json")
      #expect(outcome.code == 0)
      #expect(outcome.error == "")
      let report = try outcome.object()
      #expect(report.keys.sorted() == ["mountpoint", "pid", "source"])
      #expect(report["mountpoint"] as? String == person.mountpoint)
      #expect(report["source"] as? String == person.source)
      let path = person.mountpoint + "/photos/2024/may.jpg"
      #expect(try File.contents(of: path) == Array("a photograph".utf8))
      let pid = try person.pid()
      #expect(report["pid"] as? Int == Int(pid))
      #expect(getsid(pid) != getsid(0))
      try person.unmount()
      #expect(hasEnded(pid))
    }

    @Test(arguments: ["cache_dir", "data_dir", "log_file"])
    func aFolderOfOursInsideTheMountPointIsRefused(_ option: String) throws {
      let person = try Person()
      #expect(symlink(person.mountpoint, person.scratch.path("link")) == 0)
      for place in [person.mountpoint + "/x", person.scratch.path("link/y/z")] {
        let outcome = try person.bucketfs(
          "mount", person.source, person.mountpoint, "-o", "\(option)=\(place)")
        #expect(outcome.code == 2)
        #expect(outcome.error.contains("inside the mount point \(person.mountpoint)"))
        #expect(!person.isMounted)
      }
    }

    @Test func onAReadOnlyDiskItIsMountedAndSaysThatNothingIsKept() throws {
      let person = try Person()
      let disk = try person.scratch.folder("disk")
      #expect(
        try person.run(["/usr/bin/mount", "-t", "tmpfs", "-o", "ro", "none", disk]).code == 0)
      defer { umount2(disk, 2) }
      let outcome = try person.bucketfs(
        "mount", person.source, person.mountpoint, "-o", "cache_dir=\(disk)/cache")
      #expect(outcome.code == 0)
      #expect(outcome.error.contains("nothing is kept"))
      let path = person.mountpoint + "/photos/2024/may.jpg"
      #expect(try File.contents(of: path) == Array("a photograph".utf8))
      let status = try person.status()
      #expect((status["cache_problem"] as? String)?.contains("Read-only") == true)
      let log = try String(
        contentsOfFile: #require(status["log"] as? String), encoding: .utf8)
      #expect(log.contains("nothing is kept"))
      try person.unmount()
    }

    @Test func theBackgroundProcessHoldsNothingOfTheOneThatStartedIt() throws {
      let person = try Person()
      try person.mount()
      let pid = try person.pid()
      let folder = "/proc/\(pid)"
      let link = { try FileManager.default.destinationOfSymbolicLink(atPath: folder + $0) }
      #expect(try link("/cwd") == "/")
      #expect(try link("/fd/0") == "/dev/null")
      #expect(try link("/fd/1") == "/dev/null")
      #expect(try link("/fd/2") == person.status()["log"] as? String)
      try person.unmount()
    }

    @Test func inTheForegroundItServesUntilItIsTold() throws {
      let person = try Person()
      let running = try person.start(
        [Person.products + "/bucketfs", "mount", person.source, person.mountpoint, "-f", "--json"])
      #expect(eventually { running.output.contains("\n") })
      #expect(try person.pid() == running.pid)
      #expect(kill(running.pid, SIGTERM) == 0)
      let outcome = try running.wait()
      #expect(outcome.code == 0)
      #expect(outcome.error == "")
      #expect(try outcome.object()["pid"] as? Int == Int(running.pid))
      #expect(!person.isMounted)
      #expect(person.socketPath == nil)
    }

    @Test func anUnmountFromOutsideEndsTheProcess() throws {
      let person = try Person()
      let running = try person.start(
        [Person.products + "/bucketfs", "mount", person.source, person.mountpoint, "-f"])
      #expect(eventually { person.isMounted })
      #expect(try person.run(["/usr/bin/umount", person.mountpoint]).code == 0)
      #expect(try running.wait().code == 0)
    }

    @Test func theNameMountBucketfsTakesTheCommandLineOfMount() throws {
      let person = try Person()
      let helper = person.scratch.path("mount.bucketfs")
      try FileManager.default.createSymbolicLink(
        atPath: helper, withDestinationPath: Person.products + "/bucketfs")
      let words =
        "rw,dev,suid,exec,nodev,nosuid,noexec,user,users,_netdev,nofail,auto,noauto,defaults,"
        + "x-systemd.automount,relatime,noatime,max_age=2s"
      // mount(8) hands on neither PATH nor, often, HOME.
      person.environment = ["XDG_CACHE_HOME": try person.scratch.folder("cache")]
      let fake = try person.run([helper, person.source, person.mountpoint, "-f", "-o", words])
      #expect(fake.code == 0)
      #expect(!person.isMounted)
      let refused = try person.run([helper, person.source, person.mountpoint, "-o", "rw,what=1"])
      #expect(refused.code == 2)
      let outcome = try person.run(
        [helper, person.source, person.mountpoint, "-n", "-s", "-o", words + ",what=1"])
      #expect(outcome.code == 0, "\(outcome.error)")
      #expect(person.isMounted)
      let table = try String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)
      let line = table.split(separator: "\n").first { $0.contains(person.mountpoint) }
      #expect(line?.contains("noexec") == true)
      #expect(line?.hasPrefix(person.source) == true)
      try person.unmount()
    }

    @Test func aDeadMountIsToldAndCleanedAtTheNextMount() throws {
      let person = try Person()
      try person.mount()
      try person.killMount()
      let status = try person.bucketfs("status", person.mountpoint + "/photos", "--json")
      #expect(status.code == 3)
      #expect(try status.object()["state"] as? String == "dead")
      #expect(status.error.contains("is dead: the process that served it is gone"))
      try person.mount()
      #expect(try person.status()["state"] as? String == "serving")
      try person.unmount()
    }

    @Test func aDeadMountCanBeUnmounted() throws {
      let person = try Person()
      try person.mount()
      try person.killMount()
      try person.unmount()
      let again = try person.bucketfs("unmount", person.mountpoint)
      #expect(again.code == 1)
    }

    @Test func aBusyMountIsNotUnmounted() throws {
      let person = try Person()
      try person.mount()
      do {
        let file = try File(person.mountpoint + "/photos/a b.txt", O_RDONLY)
        let outcome = try person.bucketfs("unmount", person.mountpoint)
        #expect(outcome.code == 5)
        #expect(outcome.error.contains("is in use"))
        #expect(person.isMounted)
        _ = file.descriptor
      }
      try person.unmount()
    }

    @Test func onlyAMountPointIsUnmounted() throws {
      let person = try Person()
      try person.mount()
      let outcome = try person.bucketfs("unmount", person.mountpoint + "/photos")
      #expect(outcome.code == 2)
      #expect(outcome.error.contains("hint: bucketfs unmount \(person.mountpoint)"))
      try person.unmount()
    }

    @Test func anEmptyMountPointIsRefused() throws {
      let person = try Person()
      let outcome = try person.bucketfs("mount", person.source, "")
      #expect(outcome.code == 2)
      #expect(outcome.error.contains("the mount point is empty"), "\(outcome.error)")
    }

    @Test func aSocketThatIsElsewhereIsNamedAndTheMountLeftAlone() throws {
      let person = try Person()
      try person.mount()
      let own = person.environment["XDG_RUNTIME_DIR"]
      let other = try person.scratch.folder("other")
      person.environment["XDG_RUNTIME_DIR"] = other
      let outcome = try person.bucketfs("status", person.mountpoint)
      person.environment["XDG_RUNTIME_DIR"] = own
      #expect(outcome.code == 4)
      #expect(outcome.error.contains(".sock is not in \(other)/bucketfs, "), "\(outcome.error)")
      #expect(outcome.error.contains("hint: set XDG_RUNTIME_DIR"))
      #expect(!outcome.error.contains("unmount"))
      try person.unmount()
    }

    @Test func oneBucketOrFolderCanBeTheTop() throws {
      let person = try Person()
      try person.mount("-o", "bucket=photos,prefix=2024")
      let names = try FileManager.default.contentsOfDirectory(atPath: person.mountpoint)
      #expect(names == ["may.jpg"])
      try person.unmount()
    }

    @Test func filesShowTheirOwnerAndModeAsAskedFor() throws {
      let person = try Person()
      try person.mount("-o", "uid=1234,gid=4321,umask=077")
      var facts = stat()
      #expect(stat(person.mountpoint + "/photos/a b.txt", &facts) == 0)
      #expect(facts.st_uid == 1234)
      #expect(facts.st_gid == 4321)
      #expect(facts.st_mode & 0o777 & ~0o200 == 0o400)
      try person.unmount()
    }

    @Test func theLogGoesWhereItIsWanted() throws {
      let person = try Person()
      let log = person.scratch.path("logs/deep/log")
      try person.mount("-o", "log_file=\(log),log_level=debug")
      #expect(try person.status()["log"] as? String == log)
      try person.unmount()
      #expect(FileManager.default.fileExists(atPath: log))
    }

    @Test func aLongLogIsPutAside() throws {
      let person = try Person()
      let log = try person.scratch.file("log", [UInt8](repeating: 0x61, count: 2 << 20))
      try person.mount("-o", "log_file=\(log)")
      try person.unmount()
      #expect(FileManager.default.fileExists(atPath: log + ".old"))
      #expect(try File.contents(of: log).count < 1 << 20)
    }
  }
}
