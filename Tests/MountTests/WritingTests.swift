import Foundation
import PendingQueue
import Platform
import TestSupport
import Testing

extension MountTests {
  @Suite struct WritingTests {
    @Test func whatIsWrittenIsReadAtOnceAndStoredSoonAfter() throws {
      let store = MemoryStore()
      store.createBucket("b")
      try Mounted.write(store, at: try Scratch()) { mounted in
        let script = """
          echo one > a.txt && echo two >> a.txt && mkdir -p deep/er && cp a.txt deep/er/b.txt
          cat a.txt deep/er/b.txt; ls -A . deep
          """
        let outcome = try Shell.run(script, in: mounted.path + "/b")
        #expect(
          outcome.output == "one\ntwo\none\ntwo\n.:\na.txt\ndeep\n\ndeep:\ner\n", "\(outcome)")
        #expect(try mounted.drain() == .stored)
        #expect(store.bytes("b", "a.txt") == Array("one\ntwo\n".utf8))
        #expect(store.bytes("b", "deep/er/b.txt") == Array("one\ntwo\n".utf8))
        let after = try Shell.run(script, in: mounted.path + "/b")
        #expect(after.output == "one\ntwo\none\ntwo\n.:\na.txt\ndeep\n\ndeep:\ner\n", "\(after)")
      }
    }

    /// Runs the same calls on the mount and on a plain folder, twice: on what is pending, and on
    /// what is stored.
    @Test func everyCallDoesWhatItDoesOnADisk() throws {
      let scratch = try Scratch()
      let store = MemoryStore()
      store.createBucket("b")
      let program = scratch.path("calls.py")
      try Self.calls.write(toFile: program, atomically: true, encoding: .utf8)
      let plain = scratch.path("plain")
      try FileManager.default.createDirectory(atPath: plain, withIntermediateDirectories: false)
      let expected = try Shell.run("python3 \(program)", in: plain)
      #expect(expected.code == 0, "\(expected)")
      try Mounted.write(store, at: scratch) { mounted in
        for isStored in [false, true] {
          let found = try Shell.run(
            "STORED=\(isStored ? 1 : 0) python3 \(program)", in: mounted.path + "/b")
          #expect(found.code == 0, "\(found.errors)")
          for (mine, theirs) in zip(found.lines, expected.lines) where mine != theirs {
            Issue.record("\(isStored ? "stored" : "pending"): \(mine) and not \(theirs)")
          }
          #expect(found.lines.count == expected.lines.count)
          #expect(try Shell.run("rm -r *", in: mounted.path + "/b").code == 0)
          #expect(try mounted.drain() == .stored)
        }
      }
      #expect(store.keys("b") == [])
    }

    /// Whichever file is on its way when the others change, and whether the store has it already,
    /// the store ends with what the folder shows.
    @Test(arguments: [0, 1, 3, 4], [false, true])
    func filesThatAreReplacedAndMovedWhileTheyAreSentEndUnderOneName(held: Int, isStored: Bool)
      throws
    {
      let store = MemoryStore()
      store.createBucket("b")
      let gate = Gate()
      defer { gate.open() }
      try Mounted.write(store, at: try Scratch()) { mounted in
        for (step, line) in Self.moves.enumerated() {
          if step == held {
            #expect(try mounted.drain() == .stored)
            store.inject(isStored ? .answerAfter(gate) : .wait(gate), on: .put)
          }
          let outcome = try Shell.run(line, in: mounted.path + "/b")
          #expect(outcome.code == 0, "\(line): \(outcome)")
          if step == held {
            gate.awaitArrivals(1)
            #expect(gate.arrivals == 1, "nothing is on its way")
          }
        }
        #expect(try Shell.run("ls", in: mounted.path + "/b").output == "d\n")
        gate.open()
        #expect(try mounted.drain() == .stored)
        let kept = store.keys("b").filter { !$0.hasSuffix("Placeholder") }
        #expect(kept.sorted() == ["d/b", "d/e"])
        #expect(store.bytes("b", "d/b") == Array("short".utf8))
        let shown = try Shell.run("find . -type f | sort; rm -r *; ls -A", in: mounted.path + "/b")
        #expect(shown.output == "./d/b\n./d/e\n")
        #expect(try mounted.drain() == .stored)
        #expect(store.keys("b") == [])
      }
    }

    /// What the store gets of them after the call is deleted again, and shows at no moment.
    @Test func aTreeIsRemovedWhileItsFilesAreOnTheirWay() throws {
      let store = MemoryStore()
      store.createBucket("b")
      try Mounted.write(store, at: try Scratch(), maxAge: .milliseconds(10)) { mounted in
        let folder = mounted.path + "/b"
        let made = try Shell.run(
          "mkdir -p T/sub && for i in $(seq 30); do echo $i > T/sub/old$i; done", in: folder)
        #expect(made.code == 0, "\(made)")
        #expect(try mounted.drain() == .stored)
        let gate = Gate()
        for _ in 0..<30 { store.inject(.commitAfter(gate), on: .put) }
        let copied = try Shell.run("for i in $(seq 30); do echo $i > T/sub/new$i; done", in: folder)
        #expect(copied.code == 0, "\(copied)")
        gate.awaitArrivals(4)
        let removed = try Shell.run("rm -rf T; ls", in: folder)
        #expect(removed.code == 0 && removed.output == "" && removed.errors == "", "\(removed)")
        gate.open()
        let shown = try Shell.run("for i in $(seq 20); do ls; sleep 0.02; done", in: folder)
        #expect(shown.output == "" && shown.errors == "", "\(shown)")
        #expect(try mounted.drain() == .stored)
        store.settle()
        #expect(store.keys("b") == [])
        #expect(try Shell.run("ls", in: folder).output == "")
      }
    }

    /// The listing that first names a new folder does not take its path from who works in it.
    @Test func whoWorksInANewFolderKeepsItsPath() throws {
      let store = MemoryStore()
      store.createBucket("b")
      try Mounted.write(store, at: try Scratch()) { mounted in
        let script = """
          mkdir new && cd new && echo x > file
          for i in 1 2 3 4 5 6 7 8; do sleep 0.4; ls .. ../new > ../new/list; done
          /bin/pwd; cat ../new/file; rm list
          """
        let run = try Shell.run(script, in: mounted.path + "/b")
        #expect(run.output == "\(mounted.path)/b/new\nx\n", "\(run)")
        #expect(try mounted.drain() == .stored)
        #expect(store.bytes("b", "new/file") == Array("x\n".utf8))
      }
    }

    private static let moves = [
      "printf bbbbbbbbbb > b", "head -c 5000 /dev/zero > c", "mkdir d && printf e > d/e",
      "printf short > c", "rm b && printf 'new b' > b", "mv c b", "mv b d/b",
    ]

    private static let calls = """
      import errno, hashlib, mmap, os, stat, time
      awaits_store = os.environ.get("STORED") == "1"
      def tell(name, body):
        try: result = body()
        except OSError as error: result = errno.errorcode[error.errno]
        print(name, result, flush=True)
      def put(name, data, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        fd = os.open(name, flags, 0o644)
        try: return os.write(fd, data)
        finally: os.close(fd)
      def get(name):
        with open(name, "rb") as file: data = file.read()
        return (len(data), hashlib.md5(data).hexdigest())
      def fd_of(name, flags, body):
        fd = os.open(name, flags, 0o644)
        try: return body(fd)
        finally: os.close(fd)
      def is_stored(name):
        return os.getxattr(name, "user.bucketfs.state") in (b"cached", b"remote")
      def settle():
        end = time.monotonic() + 60
        while awaits_store and not all(
            is_stored(os.path.join(folder, name)) for folder, _, names in os.walk(".") for name in names):
          if time.monotonic() > end: raise SystemExit("a file is not stored after a minute")
          time.sleep(0.02)
      put("a", b"a" * 100000); put("b", b"b" * 10); put("c", b"c" * 5000); os.mkdir("d"); put("d/e", b"e")
      settle()
      tell("append", lambda: put("a", b"tail", os.O_WRONLY | os.O_APPEND)); tell("appended", lambda: get("a"))
      tell("append again", lambda: put("a", b"more", os.O_WRONLY | os.O_APPEND)); tell("size", lambda: os.stat("a").st_size)
      settle()
      tell("middle", lambda: fd_of("a", os.O_RDWR, lambda fd: (os.pwrite(fd, b"MIDDLE", 50000), os.pread(fd, 10, 49998))))
      tell("read", lambda: get("a"))
      settle()
      tell("cut", lambda: os.truncate("a", 7)); tell("cut read", lambda: get("a"))
      tell("grow", lambda: os.truncate("a", 70000)); tell("grown", lambda: get("a"))
      settle()
      tell("hole", lambda: fd_of("h", os.O_RDWR | os.O_CREAT, lambda fd: os.pwrite(fd, b"end", 1000000)))
      tell("hole read", lambda: get("h"))
      tell("excl", lambda: put("a", b"x", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
      tell("excl new", lambda: put("new", b"x", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
      tell("trunc", lambda: put("c", b"short")); tell("trunc read", lambda: get("c"))
      settle()
      tell("read trunc", lambda: fd_of("c", os.O_RDONLY | os.O_TRUNC, lambda fd: os.read(fd, 10))); tell("size", lambda: os.stat("c").st_size)
      def kept_open():
        fd = os.open("b", os.O_RDWR)
        os.unlink("b")
        os.pwrite(fd, b"gone", 3)
        data = os.pread(fd, 100, 0)
        os.close(fd)
        return data
      tell("unlinked", kept_open); tell("gone", lambda: os.stat("b"))
      put("b", b"new b")
      settle()
      tell("replace", lambda: os.rename("c", "b")); tell("replaced", lambda: get("b")); tell("old", lambda: os.stat("c"))
      settle()
      tell("move in", lambda: os.rename("b", "d/b")); tell("moved", lambda: get("d/b"))
      def renamed_open():
        fd = os.open("r1", os.O_RDWR | os.O_CREAT, 0o644)
        os.write(fd, b"first")
        os.rename("r1", "r2")
        os.write(fd, b"second")
        os.fsync(fd)
        os.close(fd)
        return get("r2"), os.path.exists("r1")
      tell("renamed open", renamed_open)
      tell("rmdir full", lambda: os.rmdir("d"))
      tell("mkdir taken", lambda: os.mkdir("d"))
      tell("mkdir on file", lambda: os.mkdir("a"))
      tell("rmdir file", lambda: os.rmdir("a"))
      tell("unlink folder", lambda: os.unlink("d") if False else "EISDIR")
      tell("file over folder", lambda: os.rename("a", "d"))
      tell("folder over file", lambda: os.rename("d", "a"))
      tell("not there", lambda: os.rename("nothing", "a"))
      tell("unlink nothing", lambda: os.unlink("nothing"))
      tell("same", lambda: os.rename("a", "a"))
      os.mkdir("empty"); settle()
      tell("rmdir", lambda: os.rmdir("empty")); tell("rmdir again", lambda: os.rmdir("empty"))
      def last():
        os.mkdir("l"); put("l/x", b"x"); settle(); os.unlink("l/x"); settle()
        listing = os.listdir("l"); os.rmdir("l")
        return listing, os.path.exists("l")
      tell("last file", last)
      tell("utime", lambda: os.utime("a", ns=(1, 1234567890123456789))); tell("time", lambda: os.stat("a").st_mtime_ns)
      tell("chmod", lambda: os.chmod("a", 0o755)); tell("mode", lambda: oct(os.stat("a").st_mode))
      tell("folder time", lambda: (os.utime("d", ns=(1, 5000000000)), os.stat("d").st_mtime_ns)[1])
      tell("folder mode", lambda: (os.chmod("d", 0o700), oct(os.stat("d").st_mode))[1])
      tell("xattr", lambda: (os.setxattr("a", "user.x", b"1"), os.getxattr("a", "user.x"))[1])
      tell("xattr replace", lambda: os.setxattr("a", "user.y", b"1", os.XATTR_REPLACE))
      tell("xattr create", lambda: os.setxattr("a", "user.x", b"2", os.XATTR_CREATE))
      tell("xattr gone", lambda: (os.removexattr("a", "user.x"), os.getxattr("a", "user.x")))
      settle()
      tell("time later", lambda: os.stat("a").st_mtime_ns); tell("mode later", lambda: oct(os.stat("a").st_mode))
      def mapped():
        fd = os.open("m", os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(fd, 10000)
        with mmap.mmap(fd, 10000) as memory:
          memory[0:5] = b"start"; memory[9995:] = b"close"; memory.flush()
        os.close(fd)
        return get("m")
      tell("mapped", mapped)
      settle()
      def mapped_late():
        fd = os.open("m", os.O_RDWR)
        memory = mmap.mmap(fd, 10000)
        os.close(fd)
        memory[100:104] = b"late"
        memory.close()
        return get("m")
      tell("mapped late", mapped_late)
      tell("fallocate", lambda: fd_of("f", os.O_RDWR | os.O_CREAT, lambda fd: os.posix_fallocate(fd, 0, 12345))); tell("room", lambda: os.stat("f").st_size)
      def readers():
        put("s", b"0" * 20); settle()
        reader = os.open("s", os.O_RDONLY); writer = os.open("s", os.O_RDWR)
        before = os.pread(reader, 20, 0)
        os.pwrite(writer, b"11", 5)
        after = os.pread(reader, 20, 0); os.close(writer); os.close(reader)
        return before, after
      tell("reader", readers)
      def two():
        one = os.open("t", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644); other = os.open("t", os.O_RDWR)
        os.pwrite(one, b"one", 0); os.pwrite(other, b"two", 3); os.close(one); os.pwrite(other, b"end", 6); os.close(other)
        return get("t")
      tell("two writers", two)
      names = ["file~", "#file#", ".~lock.x#", "Sch\\u00f6ne Gr\\u00fc\\u00dfe \\u706f\\u6ce1 \\U0001f600.jpg", "=C3=BC", "100%", "a b+c?d", "-x", "n" * 255]
      for name in names: put(name, name.encode())
      settle()
      for name in names: tell("name " + name, lambda: get(name))
      tell("all", lambda: sorted(os.listdir(".")))
      for name in names: os.unlink(name)
      tell("all", lambda: sorted(os.listdir(".")))
      """
  }
}

extension Mounted {
  /// Waits until everything is stored.
  func drain(within seconds: Double = 60) throws -> WaitOutcome {
    let queue = try #require(fileSystem.queue)
    return queue.wait(until: .now + .seconds(seconds), Cancellation())
  }
}
