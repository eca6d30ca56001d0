import Foundation
import Mount
import Platform
import Testing
import TestSupport

extension MountTests {
  @Suite struct Unmounting {
    private func fixture() throws -> DirectoryFixture {
      let fixture = try DirectoryFixture()
      try fixture.createBucket("b")
      try fixture.put("b", "file", Array(repeating: 7, count: 100_000))
      return fixture
    }

    @Test func anUnmountFromOutsideEndsTheSession() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        #expect(try Shell.run("fusermount3 -u '\(mounted.path)'").code == 0)
        #expect(mounted.join(within: 10))
        #expect(try mounted.result == .stopped)
      }
    }

    @Test func aBusyMountNamesWhoUsesIt() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let user = try Shell.start("exec tail -f b/file", in: mounted.path)
        user.awaitOutput()
        let error = #expect(throws: MountError.self) { try Unmount.run(mounted.path) }
        guard case .busy(mounted.path, let users) = error else {
          Issue.record("\(String(describing: error))")
          return
        }
        #expect(users.contains { $0.hasPrefix("tail (") })
        user.send(SIGKILL)
        #expect(user.ends(within: 10))
        // Its descriptor may be closed a little later than it ends.
        let deadline = Instant.now + .seconds(10)
        while Instant.now < deadline {
          do throws(MountError) {
            try Unmount.run(mounted.path)
            break
          } catch {
            guard case .busy = error else { throw error }
            usleep(10_000)
          }
        }
        #expect(mounted.join(within: 10))
      }
    }

    @Test func stoppingTakesABusyMountAway() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let user = try Shell.start("exec 3< b/file; echo; sleep 30; cat <&3", in: mounted.path)
        user.awaitOutput()
        mounted.stop()
        #expect(mounted.join(within: 10))
        #expect(try MountTable.entry(at: ByteString(mounted.path)) == nil)
        user.send(SIGKILL)
        #expect(user.ends(within: 10))
      }
    }

    @Test func aLazyUnmountKeepsOpenFilesReadable() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let user = try Shell.start(
          "exec 3< file; echo; sleep 1; wc -c <&3", in: mounted.path + "/b")
        user.awaitOutput()
        try Unmount.run(mounted.path, lazily: true)
        #expect(user.ends(within: 10))
        let output = user.output.fileHandleForReading.readDataToEndOfFile()
        #expect(String(decoding: output, as: UTF8.self) == "100000\n")
        #expect(mounted.join(within: 10))
      }
    }

    @Test(.enabled(if: geteuid() == 0, "only root mounts without a helper"))
    func aDeadMountIsClearedByTheNext() throws {
      let scratch = try Scratch()
      let path = try scratch.folder("mount")
      let abandon = """
        python3 -c '
        import ctypes, os
        channel = os.open("/dev/fuse", os.O_RDWR)
        data = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % channel
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"dead", b"\(path)", b"fuse.bucketfs", 0, data): print(ctypes.get_errno())
        '
        """
      for _ in 0..<2 { #expect(try Shell.run(abandon).output == "") }
      #expect(try Shell.run("ls '\(path)'").errors.contains("not connected"))
      #expect(try DeadMount.isDead(path))
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: scratch) { (mounted) throws in
        #expect(try Shell.run("ls", in: mounted.path).lines == ["b"])
      }
    }

    @Test func anotherMountOnTheSameFolderIsRefused() throws {
      let scratch = try Scratch()
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: scratch) { (mounted) throws in
        let error = #expect(throws: MountError.self) {
          try Mounted.use(fixture.store, at: scratch) { _ in }
        }
        #expect(error == .alreadyMounted(mounted.path, by: "test"))
        #expect(try Shell.run("ls", in: mounted.path).lines == ["b"])
      }
    }

    @Test func aMountPointThatCannotBeUsedIsNamed() throws {
      let scratch = try Scratch()
      try scratch.file("full/file", [1])
      try scratch.file("plain", [1])
      let fixture = try fixture()
      func attempt(_ name: String) throws -> MountError? {
        #expect(throws: MountError.self) {
          try Mounted.use(
            fixture.store, at: scratch, options: { $0.mountPoint = scratch.path(name) }
          ) { _ in }
        }
      }
      #expect(try attempt("none") == .missing(scratch.path("none")))
      #expect(try attempt("none/deeper") == .missing(scratch.path("none")))
      #expect(try attempt("plain") == .notDirectory(scratch.path("plain")))
      #expect(try attempt("full") == .notEmpty(scratch.path("full")))
      #expect(throws: MountError.notMounted(scratch.path("full"))) {
        try Unmount.run(scratch.path("full"))
      }
    }
  }
}
