import Foundation
import Mount
import Platform
import Testing
import TestSupport

extension MountTests {
  /// The program itself as a process of its own, and its end.
  @Suite struct Processes {
    private let fixture: DirectoryFixture
    private let scratch: Scratch
    private let path: String

    init() throws {
      fixture = try DirectoryFixture()
      scratch = try Scratch()
      path = try scratch.folder("mount")
      try fixture.createBucket("b")
      try fixture.put("b", "file", Array("text\n".utf8))
    }

    private func mount(_ words: String...) throws -> Shell.Running {
      let program = CommandLine.arguments[0].split(separator: "/").dropLast()
      let folders = "-o 'cache_dir=\(scratch.path)/cache,data_dir=\(scratch.path)/data'"
      return try Shell.start(
        """
        exec env HOME='\(scratch.path)' XDG_RUNTIME_DIR='\(scratch.path)' \
        '/\(program.joined(separator: "/"))/bucketfs' mount 'dir:\(fixture.path)' '\(path)' \
        \(folders) \(words.joined(separator: " "))
        """)
    }

    private func awaitMount() throws {
      let deadline = Instant.now + .seconds(20)
      while try MountTable.entry(at: ByteString(path)) == nil, Instant.now < deadline {
        usleep(10_000)
      }
      #expect(try Shell.run("cat b/file", in: path).output == "text\n")
    }

    private func awaitMount(dead: Bool) throws {
      let deadline = Instant.now + .seconds(20)
      while try DeadMount.isDead(path) != dead, Instant.now < deadline { usleep(10_000) }
      #expect(try DeadMount.isDead(path) == dead)
    }

    private var isMounted: Bool {
      get throws { try MountTable.entry(at: ByteString(path)) != nil }
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func aSignalUnmountsInGoodOrder(_ signal: CInt) throws {
      let program = try mount("-f")
      try awaitMount()
      try program.sendToChild(signal)
      #expect(program.ends(within: 10))
      #expect(program.process.terminationStatus == 0)
      #expect(try !isMounted)
      let errors = program.errors.fileHandleForReading.readDataToEndOfFile()
      #expect(String(decoding: errors, as: UTF8.self) == "")
    }

    @Test func aKilledProgramLeavesADeadMountThatTheNextClears() throws {
      let first = try mount("-f")
      try awaitMount()
      first.send(SIGKILL)
      #expect(first.ends(within: 10))
      try awaitMount(dead: true)
      let second = try mount("-f")
      try awaitMount(dead: false)
      try awaitMount()
      try second.sendToChild(SIGTERM)
      #expect(second.ends(within: 10))
      #expect(try !isMounted)
    }

    @Test func theBackgroundProcessLetsGoOfItsCaller() throws {
      let caller = try mount()
      #expect(caller.ends(within: 20))
      #expect(caller.process.terminationStatus == 0)
      // Up already, though nobody waited for it.
      #expect(try Shell.run("cat b/file", in: path).output == "text\n")
      // Both pipes have ended, so nothing of the caller is held open.
      #expect(caller.output.fileHandleForReading.readDataToEndOfFile().isEmpty)
      #expect(caller.errors.fileHandleForReading.readDataToEndOfFile().isEmpty)
      let process = try #require(server)
      let facts = try Shell.run(
        "cd /proc/\(process); readlink cwd fd/0 fd/1; cut -d' ' -f6 stat; cat comm")
      #expect(facts.lines == ["/", "/dev/null", "/dev/null", "\(process)", "bucketfs"])
      try Unmount.run(path)
      let deadline = Instant.now + .seconds(20)
      while kill(process, 0) == 0, Instant.now < deadline { usleep(10_000) }
      #expect(kill(process, 0) != 0)
    }

    @Test func aBackgroundStartThatFailsSaysSoItself() throws {
      try scratch.file("mount/file", [1])
      let caller = try mount()
      #expect(caller.ends(within: 20))
      #expect(caller.process.terminationStatus == 5)
      let errors = caller.errors.fileHandleForReading.readDataToEndOfFile()
      #expect(
        String(decoding: errors, as: UTF8.self).hasPrefix("bucketfs: \(path) is not empty\nhint: "))
      #expect(try server == nil)
    }

    /// The process that serves the mount; nil when there is none.
    private var server: Int32? {
      get throws {
        try Shell.run("pgrep -f '[b]ucketfs mount dir:\(fixture.path)'").lines.first.flatMap {
          Int32($0)
        }
      }
    }
  }
}
