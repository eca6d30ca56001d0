import Foundation
import Platform
import Testing
import TestSupport

extension MountTests {
  @Suite struct Attributes {
    @Test func extendedAttributesTellTheStateOfAFile() throws {
      let fixture = try DirectoryFixture()
      try fixture.createBucket("b")
      try fixture.put("b", "folder/file", [1, 2, 3])
      let script = """
        python3 -c '
        import ctypes, errno, os, time
        def state(): return os.getxattr("file", "user.bucketfs.state").decode()
        print("user.bucketfs.state" in os.listxattr("file"), state())
        open("file").read()
        # The copy is put in place just after its last byte was handed on.
        for _ in range(500):
          if state() == "cached": break
          time.sleep(0.01)
        print(state(), os.getxattr("file", "user.bucketfs.key").decode())
        try: os.getxattr("file", "user.none")
        except OSError as error: print(errno.errorcode[error.errno])
        libc = ctypes.CDLL(None, use_errno=True)
        size = libc.getxattr(b"file", b"user.bucketfs.state", None, 0)
        short = libc.getxattr(b"file", b"user.bucketfs.state", ctypes.create_string_buffer(9), 1)
        print(size, short, errno.errorcode[ctypes.get_errno()])
        '
        """
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let outcome = try Shell.run(script, in: mounted.path + "/b/folder")
        #expect(
          outcome.lines == [
            "False remote", "cached folder/file", "ENODATA", "6 -1 ERANGE",
          ], "\(outcome)")
      }
    }

    /// What a mount says of a file is never copied to another one.
    @Test func onlyWhatProgramsHaveSetIsListedAndCopied() throws {
      let store = MemoryStore()
      store.createBucket("b")
      try Mounted.write(store, at: try Scratch()) { mounted in
        let script = """
          echo one > a && python3 -c '
          import ctypes, errno, os
          os.setxattr("a", "user.note", b"mine")
          print(os.listxattr("a"))
          libc = ctypes.CDLL(None, use_errno=True)
          size = libc.listxattr(b"a", None, 0)
          short = libc.listxattr(b"a", ctypes.create_string_buffer(9), 1)
          print(size, short, errno.errorcode[ctypes.get_errno()])
          try: os.setxattr("a", "user.bucketfs.pin", b"1")
          except OSError as error: print(error.errno == errno.EOPNOTSUPP)
          fd = os.open("a", os.O_RDONLY)
          links = os.fstat(fd).st_nlink
          os.unlink("a")
          print(links, os.fstat(fd).st_nlink, os.read(fd, 3).decode())
          '
          """
        let outcome = try Shell.run(script, in: mounted.path + "/b")
        #expect(
          outcome.lines == ["['user.note']", "10 -1 ERANGE", "True", "1 0 one"],
          "\(outcome)")
        #expect(try mounted.drain() == .stored)
      }
    }

    @Test func askingAnewReachesWhatTheKernelHolds() throws {
      let store = MemoryStore()
      store.createBucket("b")
      store.put("b", "d/file", [1])
      store.put("b", "d/gone", [1])
      try Mounted.use(store, at: try Scratch(), maxAge: .seconds(3600)) { (mounted) throws in
        let look = "stat -c %s d/file; test -e d/new && echo new; test -e d/gone && echo gone"
        let folder = mounted.path + "/b"
        #expect(try Shell.run(look, in: folder).lines == ["1", "gone"])
        store.put("b", "d/file", [1, 2, 3])
        store.put("b", "d/new", [1])
        store.remove("b", "d/gone")
        #expect(try Shell.run(look, in: folder).lines == ["1", "gone"])
        mounted.fileSystem.distrust()
        // Names are handed to the kernel by a thread of their own.
        let deadline = Instant.now + .seconds(30)
        var lines: [String] = []
        while lines != ["3", "new"], Instant.now < deadline {
          lines = try Shell.run(look, in: folder).lines
        }
        #expect(lines == ["3", "new"])
      }
    }

    @Test func aChangeInTheStoreIsSeenOnTheNextOpen() throws {
      let store = MemoryStore()
      store.createBucket("b")
      store.put("b", "file", Array("old\n".utf8))
      try Mounted.use(store, at: try Scratch(), maxAge: .milliseconds(50)) { (mounted) throws in
        // The same length, and read before, so that only dropped pages can show it.
        #expect(try Shell.run("cat b/file; cat b/file", in: mounted.path).output == "old\nold\n")
        store.put("b", "file", Array("new\n".utf8))
        store.put("b", "other", Array("more\n".utf8))
        usleep(200_000)
        #expect(try Shell.run("cat b/file", in: mounted.path).output == "new\n")
        #expect(try Shell.run("ls b", in: mounted.path).lines == ["file", "other"])
        store.remove("b", "file")
        usleep(200_000)
        #expect(try Shell.run("cat b/file", in: mounted.path).errors.contains("No such file"))
      }
    }

    @Test func anOpenFileKeepsItsVersion() throws {
      let store = MemoryStore()
      store.createBucket("b")
      store.put("b", "file", Array(repeating: UInt8(ascii: "a"), count: 1_000_000))
      try Mounted.use(store, at: try Scratch(), maxAge: .milliseconds(50)) { (mounted) throws in
        let reader = try Shell.start(
          "exec 3< b/file; head -c 10 <&3; sleep 1; tr -d a <&3 | wc -c", in: mounted.path)
        usleep(500_000)
        store.put("b", "file", Array(repeating: UInt8(ascii: "b"), count: 1_000_000))
        #expect(try Shell.run("head -c 3 b/file", in: mounted.path).output == "bbb")
        #expect(reader.ends(within: 20))
        let output = reader.output.fileHandleForReading.readDataToEndOfFile()
        #expect(String(decoding: output, as: UTF8.self) == "aaaaaaaaaa0\n")
      }
    }
  }
}
