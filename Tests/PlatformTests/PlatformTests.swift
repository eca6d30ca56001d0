import Glibc
import Platform
import TestSupport
import Testing

@Suite struct ByteStringTests {
  @Test func composedAndDecomposedNamesDiffer() {
    #expect(ByteString("\u{FC}") != ByteString("u\u{308}"))
    #expect("\u{FC}" == "u\u{308}")
  }

  @Test func orderIsBytewise() {
    let names: [ByteString] = ["b", "a/", "a.txt", "B", ByteString([0xFF]), "a"]
    #expect(names.sorted() == ["B", "a", "a.txt", "a/", "b", ByteString([0xFF])])
  }

  @Test func bytesThatAreNoTextAreShownEscaped() {
    #expect(ByteString([0x61, 0xFF, 0x0A]).description == "a\\xff\\x0a")
    #expect(ByteString("grün").description == "grün")
  }

  @Test func splittingKeepsEmptyPieces() {
    #expect(ByteString("a//b/").split(at: ByteString.slash) == ["a", "", "b", ""])
    #expect(ByteString("").split(at: ByteString.slash) == [""])
  }
}

@Suite struct PercentTests {
  @Test func everyByteComesBack() {
    let all = ByteString((0...255).map { UInt8($0) })
    #expect(Percent.decode(Percent.encode(all).utf8) == all)
    #expect(Percent.decode(Percent.encodePath(all).utf8) == all)
  }

  @Test func signsThatChangeARequestAreEncoded() {
    #expect(Percent.encodePath("a b+c;d?e#f%41/ü") == "a%20b%2Bc%3Bd%3Fe%23f%2541/%C3%BC")
    #expect(Percent.encode("a/b") == "a%2Fb")
  }

  @Test func aBrokenEscapeIsRefused() {
    #expect(Percent.decode("%4".utf8) == nil)
    #expect(Percent.decode("%zz".utf8) == nil)
    #expect(Percent.decode("%".utf8) == nil)
    #expect(Percent.decode("a+b".utf8) == "a+b")
  }
}

@Suite struct FileTests {
  @Test func replaceLeavesTheNewBytesAndNoTemporaryFile() throws {
    let scratch = try Scratch()
    let path = scratch.path("state.json")
    try File.replace(path, with: Array("one".utf8))
    try File.replace(path, with: Array("two".utf8))
    #expect(try File.contents(of: path) == Array("two".utf8))
    #expect(access(path + ".new", F_OK) != 0)
  }

  @Test func replaceInAMissingFolderFailsAndSaysWhy() throws {
    let scratch = try Scratch()
    #expect(throws: Errno.noEntry) {
      try File.replace(scratch.path("none/state.json"), with: [1])
    }
  }

  @Test func aFileLongerThanTheLimitIsRefused() throws {
    let scratch = try Scratch()
    try scratch.file("big", [UInt8](repeating: 0, count: 100))
    #expect(throws: Errno.fileTooLarge) { try File.contents(of: scratch.path("big"), limit: 99) }
  }

  @Test func readStopsAtTheEndOfTheFile() throws {
    let scratch = try Scratch()
    let file = try File(try scratch.file("a", [1, 2, 3, 4]), O_RDONLY)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 10, alignment: 1)
    defer { buffer.deallocate() }
    #expect(try file.read(buffer, at: 2) == 2)
    #expect(Array(buffer[..<2]) == [3, 4])
    #expect(try file.read(buffer, at: 9) == 0)
  }
}

@Suite struct DirectoryTests {
  @Test func aPathNeverLeavesItsFolder() throws {
    let scratch = try Scratch()
    try scratch.file("outside", [1])
    let inside = try Directory(try scratch.folder("inside"))
    #expect(symlink("../outside", scratch.path("inside/link")) == 0)
    #expect(symlink("..", scratch.path("inside/up")) == 0)
    for path in ["../outside", "/etc/passwd", "link", "up/outside"] as [ByteString] {
      #expect(throws: Errno.self, "\(path)") { _ = try inside.open(path, O_RDONLY) }
      #expect(throws: Errno.self, "\(path)") {
        _ = try inside.open(path, O_WRONLY | O_CREAT | O_TRUNC)
      }
    }
    #expect(try File.contents(of: scratch.path("outside")) == [1])
  }

  @Test func foldersAreMadeOnceAndFilesMoveBetweenThem() throws {
    let scratch = try Scratch()
    let one = try Directory(try scratch.folder("one"))
    let two = try Directory(try scratch.folder("two"))
    try scratch.file("one/x", [7])
    try two.makeFolders("a/b")
    try two.makeFolders("a/b")
    try two.take("x", from: one, as: "a/b/y")
    #expect(try File.contents(of: scratch.path("two/a/b/y")) == [7])
    #expect(access(scratch.path("one/x"), F_OK) != 0)
    try two.remove("a/b/y")
    #expect(access(scratch.path("two/a/b/y"), F_OK) != 0)
  }
}

@Suite struct ThreadTests {
  @Test func aConditionWakesAWaiterAndADeadlineEndsTheWait() throws {
    let state = Locked(0)
    let thread = try Thread(name: "test") {
      state.withLock { $0 = 1 }
      state.wakeAll()
    }
    #expect(state.wait { $0 == 1 ? "seen" : nil } == "seen")
    thread.join()
    let start = Instant.now
    #expect(state.wait(until: start + .milliseconds(30)) { $0 == 2 ? 1 : nil } == nil)
    #expect(Instant.now.since(start) >= .milliseconds(30))
  }

  @Test func cancellingRunsEachHandlerOnceAndLateOnesAtOnce() {
    let cancellation = Cancellation()
    let count = Locked(0)
    let removed = cancellation.onCancel { count.withLock { $0 += 100 } }
    _ = cancellation.onCancel { count.withLock { $0 += 1 } }
    cancellation.remove(removed)
    cancellation.cancel()
    cancellation.cancel()
    #expect(count.withLock { $0 } == 1)
    _ = cancellation.onCancel { count.withLock { $0 += 10 } }
    #expect(count.withLock { $0 } == 11)
    #expect(cancellation.sleep(until: .now + .seconds(60)))
  }

  @Test func aThreadBlocksSignals() throws {
    let seen = Locked("")
    let thread = try Thread(name: "bucketfs-long-name") {
      var blocked = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &blocked)
      let isBlocked = sigismember(&blocked, SIGTERM) == 1
      seen.withLock { $0 = isBlocked ? "blocked" : "open" }
    }
    thread.join()
    #expect(seen.withLock { $0 } == "blocked")
  }
}

@Suite struct DigestTests {
  @Test func digestsAgreeWithPublishedVectors() {
    #expect(Digest.hex(.md5, of: []) == "d41d8cd98f00b204e9800998ecf8427e")
    #expect(
      Digest.hex(.sha256, of: Array("abc".utf8))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }
}

@Suite struct ClockTests {
  @Test func momentsBeforeTheEpochKeepTheirNanoseconds() {
    let moment = Timestamp(nanoseconds: -1_500_000_000)
    #expect(moment.timespec.tv_sec == -2)
    #expect(moment.timespec.tv_nsec == 500_000_000)
  }

  @Test func spansAreToldInSeconds() {
    #expect(Span.seconds(10).text == "10 s")
    #expect(Span.milliseconds(2_500).text == "2.5 s")
    #expect(Span.milliseconds(9_287).text == "9.3 s")
    #expect(Span.milliseconds(20).text == "0 s")
  }

  @Test func hugeTimesAreCutNotWrapped() {
    #expect(Timestamp(seconds: .max).nanoseconds == .max)
    #expect(Span.seconds(1e300).nanoseconds > 0)
    #expect((Instant(nanoseconds: .max - 1) + .seconds(10)).nanoseconds == .max)
  }
}
