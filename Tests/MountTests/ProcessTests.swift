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
  }
}
