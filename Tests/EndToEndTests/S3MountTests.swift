import BucketStore
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

/// The whole program over S3: a real mount, a real server, and a line between them that breaks.
@Suite(.serialized, .timeLimit(.minutes(4))) struct S3MountTests {
  private let mount: S3Mount
  private var machine: Machine { mount.machine }

  init() throws {
    mount = try S3Mount()
  }

  private func shell(_ line: String) throws -> String {
    let outcome = try machine.shell(line)
    try #require(outcome.code == 0, "\(line): \(outcome.error)")
    return outcome.output
  }

  @Test func whatTheServerHasIsListedAndReadWithItsNames() throws {
    let files = [
      "plain.jpg", "a+b c;d (1).jpg", "100%25.jpg", "Grüße 灯 😀.txt", "a.b", "a/b", "deep/er/x",
      "=C3=BC.txt",
    ]
    for name in files { try mount.fixture.put("album", name, Array(name.utf8)) }
    try mount.fixture.put("album", "empty/", [])
    try mount.mount()
    let found = try shell(#"cd "$M" && find . -type f -printf '%P\n' | LC_ALL=C sort"#)
    #expect(found.split(separator: "\n").map(String.init).sorted() == files.sorted())
    for name in files { #expect(try mount.read(name) == Array(name.utf8), "\(name)") }
    #expect(try shell(#"ls -A "$M/empty""#).isEmpty)
    #expect(try mount.read("deep/er/x") == Array("deep/er/x".utf8))
    try machine.unmount()
  }

  @Test func whatIsWrittenIsAtTheServerWithItsTimeAndSurvivesARemount() throws {
    try mount.mount()
    var random = SeededGenerator(seed: 3)
    let large = random.bytes((17 << 20) + 123)
    try machine.scratch.file("large.bin", large)
    _ = try shell(
      #"""
      mkdir -p "$M/new/inner" "$M/kept" && echo hello >"$M/new/inner/ü (1).txt" &&
      touch -d '2020-02-03 04:05:06.789 UTC' t && cp -p t "$M/new/time" &&
      cp large.bin "$M/large.bin"
      """#)
    try mount.wait()
    // Whether a folder with a file in it has a marker too depends on who was first.
    let keys = try mount.keys()
    #expect(keys.filter { !$0.hasSuffix("/") } == ["large.bin", "new/inner/ü (1).txt", "new/time"])
    #expect(keys.contains("kept/"))
    #expect(try mount.stored("large.bin") == large)
    let store = mount.fixture.makeStore()
    let facts = try store.info(mount.fixture.object("album", "new/time"), Call())
    #expect(facts.userMetadata?["mtime"] == "1580702706.789000000")
    let parts = try store.info(mount.fixture.object("album", "large.bin"), Call())
    #expect(parts.tag?.hasSuffix("-3\"") == true)

    try machine.unmount()
    try mount.mount()
    #expect(try shell(#"cat "$M/new/inner/ü (1).txt""#) == "hello\n")
    #expect(try shell(#"stat -c %Y "$M/new/time""#) == "1580702706\n")
    #expect(try mount.read("large.bin") == large)
    #expect(try shell(#"ls "$M""#) == "kept\nlarge.bin\nnew\n")
    _ = try shell(
      #"""
      rmdir "$M/kept" && mv "$M/new/time" "$M/moved" && rm "$M/large.bin" &&
      echo again >"$M/moved" && ! rmdir "$M/new" 2>/dev/null
      """#)
    try mount.wait()
    #expect(try mount.stored("moved") == Array("again\n".utf8))
    #expect(try mount.stored("large.bin") == nil)
    #expect(try mount.stored("new/time") == nil)
    #expect(try !mount.keys().contains("kept/"))
    #expect(try shell(#"ls "$M""#) == "moved\nnew\n")
    try machine.unmount()
  }

  @Test func withTheLineCutTheKeptIsServedAndTheWrittenGoesLater() throws {
    try mount.fixture.put("album", "seen.txt", Array("seen".utf8))
    try mount.fixture.put("album", "unseen.txt", Array("unseen".utf8))
    try mount.mount("max_age=0,timeout=2s")
    #expect(try mount.read("seen.txt") == Array("seen".utf8))
    mount.line.cut(true)
    #expect(try mount.read("seen.txt") == Array("seen".utf8))
    let refused = try machine.shell(#"cat "$M/unseen.txt""#)
    #expect(refused.code != 0 && refused.error.contains("unreachable"), "\(refused.error)")
    try mount.write("written.txt", Array("offline".utf8))
    #expect(try mount.read("written.txt") == Array("offline".utf8))
    #expect(try mount.stored("written.txt") == nil)
    mount.line.cut(false)
    _ = try machine.bucketfs("online", machine.mountpoint)
    try mount.wait()
    #expect(try mount.stored("written.txt") == Array("offline".utf8))
    #expect(try mount.read("unseen.txt") == Array("unseen".utf8))
    try machine.unmount()
  }

  @Test func anotherWritersFileIsNotOverwritten() throws {
    try mount.mount("max_age=0,timeout=2s")
    _ = try shell(#"ls "$M""#)
    mount.line.cut(true)
    try mount.write("same.txt", Array("mine".utf8))
    try mount.fixture.put("album", "same.txt", Array("theirs".utf8))
    mount.line.cut(false)
    _ = try machine.bucketfs("online", machine.mountpoint)
    let outcome = try machine.bucketfs("wait", machine.mountpoint, "--timeout", "60s")
    #expect(try mount.stored("same.txt") == Array("theirs".utf8))
    let everything = try mount.keys().compactMap { try mount.stored($0) }
    let isKeptHere = try machine.bucketfs("queue", machine.mountpoint).output.contains("same")
    #expect(everything.contains(Array("mine".utf8)) || outcome.code == 3 && isKeptHere)
    try machine.unmount()
  }

  @Test(arguments: [
    "upload.marked", "upload.token-saved", "upload.sent", "upload.verified",
  ])
  func aProgramKilledWhileItSendsLosesNothing(step: String) throws {
    try mount.mount(killedAt: step)
    var random = SeededGenerator(seed: 9)
    let bytes = random.bytes(9 << 20)
    try machine.scratch.file("film.bin", bytes)
    // It may die under the copy, which is then not acknowledged.
    let copied = try machine.shell(#"cp film.bin "$M/film.bin" && sync "$M/film.bin""#)
    for _ in 0..<3000 where !isDead { usleep(10_000) }
    try #require(isDead)
    try mount.mount()
    try mount.wait()
    if copied.code == 0 {
      #expect(try mount.stored("film.bin") == bytes)
      #expect(try mount.read("film.bin") == bytes)
    } else {
      let stored = try mount.stored("film.bin")
      #expect(stored == nil || stored == bytes)
    }
    try machine.unmount()
  }

  private var isDead: Bool {
    var facts = stat()
    return stat(machine.mountpoint, &facts) != 0 && errno == ENOTCONN
  }

  @Test func wrongCredentialsAndBucketsAreRefusedWithASentence() throws {
    let wrong = try machine.run(
      "env", "AWS_SECRET_ACCESS_KEY=wrong", Child.products + "/bucketfs", "mount", mount.source,
      machine.mountpoint)
    #expect(wrong.code == 5)
    #expect(wrong.error.contains("AWS_ACCESS_KEY_ID"), "\(wrong.error)")
    let missing = try machine.bucketfs("mount", "s3://nowhere-at-all", machine.mountpoint)
    #expect(missing.code == 1 || missing.code == 5, "\(missing.error)")
    #expect(!machine.isMounted)
  }
}
