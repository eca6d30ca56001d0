import BucketStore
import Foundation
import Mount
import Platform
import Testing
import TestSupport

extension MountTests {
  /// A store that does not answer, and what must go on all the same.
  @Suite struct Waiting {
    private func store(objects: Int, _ mode: StalledStore.Mode = .beforeTheAnswer)
      -> StalledStore
    {
      let store = MemoryStore()
      store.createBucket("b")
      for number in 0..<objects { store.put("b", ByteString("slow/\(number)"), [1, 2, 3]) }
      store.put("b", "quick/file", Array("quick\n".utf8))
      return StalledStore(store, mode)
    }

    /// Opens the files below slow/, each on a thread of its own.
    private let readers = """
      exec python3 -c '
      import threading, os
      def read(n):
        try: print(open("b/slow/%d" % n).read() and "read", flush=True)
        except OSError as error: print(error.strerror, flush=True)
      threads = [threading.Thread(target=read, args=(n,)) for n in range(COUNT)]
      for thread in threads: thread.start()
      for thread in threads: thread.join()
      '
      """

    @Test(arguments: [StalledStore.Mode.beforeTheAnswer, .afterTheHead])
    func threeHundredWaitingReadersDelayNothingElse(_ mode: StalledStore.Mode) throws {
      let store = store(objects: 300, mode)
      try Mounted.use(store, at: try Scratch(), maxAge: .seconds(3600)) { (mounted) throws in
        _ = try Shell.run("cat quick/file; ls -l slow", in: mounted.path + "/b")
        let line = readers.replacingOccurrences(of: "COUNT", with: "300")
        let waiting = try Shell.start(line, in: mounted.path)
        #expect(store.awaitWaiting(8))
        usleep(700_000)
        for _ in 0..<20 {
          let start = Instant.now
          let outcome = try Shell.run(
            "stat -c %s quick/file slow/7 && cat quick/file && ls slow | wc -l && df . > /dev/null",
            in: mounted.path + "/b")
          #expect(outcome.output == "6\n3\nquick\n300\n", "\(outcome)")
          // Whatever waits for the store waits for 10 s.
          #expect(Instant.now.since(start) < .seconds(5))
        }
        let unmount = try Shell.run("fusermount3 -u '\(mounted.path)'", limit: 5)
        #expect(unmount.code == 1 && unmount.errors.contains("busy"), "\(unmount)")

        let killed = Instant.now
        waiting.send(SIGKILL)
        #expect(waiting.ends(within: 5), "readers outlive SIGKILL")
        #expect(Instant.now.since(killed) < .seconds(5))
      }
    }

    @Test func releasedReadersAllGetTheirBytes() throws {
      let store = store(objects: 100)
      try Mounted.use(store, at: try Scratch(), maxAge: .seconds(3600)) { (mounted) throws in
        let line = readers.replacingOccurrences(of: "COUNT", with: "100")
        let waiting = try Shell.start(line, in: mounted.path)
        #expect(store.awaitWaiting(64))
        store.release()
        #expect(waiting.ends(within: 30))
        let output = waiting.output.fileHandleForReading.readDataToEndOfFile()
        #expect(
          String(decoding: output, as: UTF8.self) == String(repeating: "read\n", count: 100))
      }
    }

    @Test func aSignalEndsTheWait() throws {
      let store = store(objects: 1)
      try Mounted.use(store, at: try Scratch()) { (mounted) throws in
        let line = """
          exec python3 -c '
          import signal
          def stop(*_): raise InterruptedError
          signal.signal(signal.SIGINT, stop)
          signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
          try: open("b/slow/0").read()
          except InterruptedError: print("interrupted", flush=True)
          '
          """
        let reader = try Shell.start(line, in: mounted.path)
        #expect(store.awaitWaiting(1))
        reader.send(SIGINT)
        #expect(reader.ends(within: 5))
        let output = reader.output.fileHandleForReading.readDataToEndOfFile()
        #expect(String(decoding: output, as: UTF8.self) == "interrupted\n")
        #expect(store.waiting == 0)
      }
    }

    @Test func aKillEndsTheWaitAtOnce() throws {
      let store = store(objects: 1)
      try Mounted.use(store, at: try Scratch()) { (mounted) throws in
        let reader = try Shell.start("exec cat b/slow/0", in: mounted.path)
        #expect(store.awaitWaiting(1))
        reader.send(SIGKILL)
        #expect(reader.ends(within: 5))
        #expect(store.awaitNoneWaiting())
      }
    }

    @Test func aSilentStoreEndsInATimeOut() throws {
      let store = store(objects: 1)
      try Mounted.use(store, at: try Scratch(), options: { $0.timeout = .milliseconds(300) }) {
        let reader = try Shell.run("cat b/slow/0", in: $0.path, limit: 20)
        #expect(reader.errors.contains("timed out"), "\(reader)")
      }
    }

    @Test func killsThatRaceWithAnswersLeaveNothingBehind() throws {
      let store = store(objects: 40)
      store.answer(within: .milliseconds(20))
      try Mounted.use(store, at: try Scratch()) { (mounted) throws in
        let line = readers.replacingOccurrences(of: "COUNT", with: "40")
        for round in 0..<25 {
          let reading = try Shell.start(line, in: mounted.path)
          usleep(useconds_t(60_000 + round * 3_000))
          reading.send(SIGKILL)
          #expect(reading.ends(within: 10))
        }
        #expect(store.awaitNoneWaiting())
        let all = try Shell.run("cat b/slow/* | wc -c", in: mounted.path)
        #expect(all.lines == ["120"], "\(all)")
      }
    }

    @Test func aSecondSignalLeavesBehindWhatDoesNotEnd() throws {
      let store = store(objects: 1, .stubbornly)
      let scratch = try Scratch()
      let announced = ["unmounted while some calls were still unanswered"]
      try Mounted.use(store, at: scratch, expecting: announced, abandoning: true) {
        (mounted) throws in
        let reader = try Shell.start("exec ls b/slow", in: mounted.path)
        #expect(store.awaitWaiting(1))
        mounted.signal(SIGTERM)
        #expect(!mounted.join(within: 0.5))
        mounted.signal(SIGINT)
        #expect(mounted.join(within: 5))
        #expect(try mounted.result == .forced(SIGINT))
        #expect(try MountTable.entry(at: ByteString(mounted.path)) == nil)
        store.release()
        #expect(reader.ends(within: 10))
      }
    }

    @Test func aSignalStopsTheMount() throws {
      try Mounted.use(store(objects: 1), at: try Scratch()) { (mounted) throws in
        mounted.signal(SIGHUP)
        #expect(mounted.join(within: 10))
        #expect(try mounted.result == .signal(SIGHUP))
      }
    }

    @Test func stoppingEndsEveryWait() throws {
      let store = store(objects: 100)
      try Mounted.use(store, at: try Scratch()) { (mounted) throws in
        let line = readers.replacingOccurrences(of: "COUNT", with: "100")
        let waiting = try Shell.start(line, in: mounted.path)
        #expect(store.awaitWaiting(64))
        mounted.stop()
        #expect(mounted.join(within: 8))
        #expect(try mounted.result == .stopped)
        #expect(waiting.ends(within: 5))
      }
    }
  }
}
