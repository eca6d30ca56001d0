import BucketStore
import Foundation
import Mount
import Platform
import Testing
import TestSupport

extension MountTests {
  /// Hundreds of calls that only a silent store could answer, and what is kept beside them.
  @Suite struct ColdCrowd {
    private func store() -> StalledStore {
      let store = MemoryStore()
      store.createBucket("b")
      for number in 0..<300 { store.put("b", ByteString("slow/\(number)"), [1, 2, 3]) }
      for number in 0..<10 { store.put("b", ByteString("kept/\(number)"), Array("kept\n".utf8)) }
      return StalledStore(store)
    }

    /// Opens 300 files at once and says how each open ended.
    private let crowd = """
      exec python3 -c '
      import threading, os
      import time
      def read(n):
        start = time.monotonic()
        try: outcome = open("b/slow/%d" % n).read() and "read"
        except OSError as error: outcome = error.strerror
        print("%s after %.1f" % (outcome, time.monotonic() - start), flush=True)
      threads = [threading.Thread(target=read, args=(n,)) for n in range(300)]
      for thread in threads: thread.start()
      for thread in threads: thread.join()
      '
      """

    @Test func whatIsKeptNeverStandsBehindIt() throws {
      let store = store()
      // Nothing is believed without asking, so that each look at what is kept may have to wait.
      try Mounted.use(
        store, at: try Scratch(), maxAge: .zero, options: { $0.timeout = .seconds(40) }
      ) { (mounted) throws in
        let kept = "cat kept/* && ls kept | wc -l && stat -c %s kept/3 && ls slow | wc -l"
        let first = try Shell.run(kept, in: mounted.path + "/b")
        let crowd = try Shell.start(crowd, in: mounted.path)
        #expect(store.awaitWaiting(60))
        usleep(500_000)
        for _ in 0..<3 {
          let start = Instant.now
          let outcome = try Shell.run(kept, in: mounted.path + "/b")
          #expect(outcome.output == first.output, "\(outcome)")
          // Whatever waits for the store waits for 40 s.
          #expect(Instant.now.since(start) < .seconds(12))
        }
        #expect(store.waiting >= 60)
        crowd.send(SIGKILL)
        #expect(crowd.ends(within: 5))
      }
    }

    @Test func whoFindsNoThreadWaitsNoLongerThanTheOthers() throws {
      try Mounted.use(store(), at: try Scratch(), options: { $0.timeout = .seconds(5) }) {
        (mounted) throws in
        _ = try Shell.run("ls -l slow", in: mounted.path + "/b")
        let crowd = try Shell.start(crowd, in: mounted.path)
        #expect(crowd.ends(within: 120))
        let output = crowd.output.fileHandleForReading.readDataToEndOfFile()
        let lines = String(decoding: output, as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 300)
        #expect(lines.allSatisfy { $0.hasPrefix("Connection timed out after ") }, "\(lines)")
        let times = lines.compactMap { Double($0.split(separator: " ").last ?? "") }
        #expect(times.count == 300)
        // A second turn would end at 10 s.
        #expect(times.allSatisfy { $0 < 8 }, "\(times.sorted().suffix(10))")
      }
    }

    @Test func whoStandsInLineCanBeInterrupted() throws {
      let store = store()
      try Mounted.use(store, at: try Scratch()) { (mounted) throws in
        _ = try Shell.run("ls -l slow", in: mounted.path + "/b")
        let crowd = try Shell.start(crowd, in: mounted.path)
        #expect(store.awaitWaiting(60))
        usleep(200_000)
        let late = try Shell.start("exec cat b/slow/7", in: mounted.path)
        usleep(300_000)
        late.send(SIGKILL)
        #expect(late.ends(within: 4))
        crowd.send(SIGKILL)
        #expect(crowd.ends(within: 5))
        #expect(store.awaitNoneWaiting())
      }
    }
  }
}
