import Foundation
import Mount
import Platform
import TestSupport
import Testing

/// Every test that runs the built program, one after the other: they look at this machine's mounts.
@Suite(
  .serialized, .enabled(if: Person.canMount, "/dev/fuse or the right to mount is missing"),
  .timeLimit(.minutes(5)))
enum ProgramTests {}

/// A person with a home of their own in a temporary folder, and the built program.
final class Person {
  static var canMount: Bool { geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0 }

  /// The folder of the built programs, beside the tests.
  static let products: String = {
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") }
    return URL(fileURLWithPath: bundle ?? CommandLine.arguments[0])
      .deletingLastPathComponent().path
  }()

  /// How a program ended.
  struct Outcome {
    /// -1 when it had to be killed.
    let code: Int32
    let output: String
    let error: String

    /// The lines of output as JSON objects.
    func objects() throws -> [[String: Any]] {
      try output.split(separator: "\n").map {
        try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
      }
    }

    /// The one line of output as a JSON object.
    func object() throws -> [String: Any] {
      let objects = try objects()
      #expect(objects.count == 1, "\(output)")
      return try #require(objects.first)
    }
  }

  let scratch: Scratch
  let mountpoint: String
  /// A folder with one bucket, `photos`, to be mounted.
  let folder: String
  var environment: [String: String]

  init() throws {
    scratch = try Scratch()
    mountpoint = try scratch.folder("mnt")
    folder = try scratch.folder("store")
    try scratch.file("store/photos/2024/may.jpg", Array("a photograph".utf8))
    try scratch.file("store/photos/a b.txt", Array("hello".utf8))
    environment = [
      "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
      "HOME": try scratch.folder("home"),
      "XDG_CACHE_HOME": try scratch.folder("cache"),
      "XDG_DATA_HOME": try scratch.folder("data"),
      "XDG_CONFIG_HOME": try scratch.folder("config"),
      "XDG_RUNTIME_DIR": try scratch.folder("run"),
    ]
  }

  deinit {
    if isMounted {
      if let pid = try? pid() { kill(pid, SIGKILL) }
      umount2(mountpoint, 2)
    }
  }

  var source: String { "dir:\(folder)" }

  var isMounted: Bool {
    guard let entry = try? MountTable.entry(at: ByteString(mountpoint)) else { return false }
    return entry.isOurs
  }

  /// Writes the configuration file.
  func configure(_ text: String, mode: mode_t = 0o600) throws {
    let path = try scratch.file("config/bucketfs/config", Array(text.utf8))
    chmod(path, mode)
  }

  /// Starts a program with its output in files, which a child that outlives it does not hold up.
  func start(_ words: [String]) throws -> Running {
    try Running(words, environment: environment, in: scratch)
  }

  func run(_ words: [String], timeout: Double = 60) throws -> Outcome {
    try start(words).wait(timeout)
  }

  /// Runs the built `bucketfs`.
  func bucketfs(_ words: String..., timeout: Double = 60) throws -> Outcome {
    try run([Self.products + "/bucketfs"] + words, timeout: timeout)
  }

  /// Mounts in the background.
  func mount(_ more: String...) throws {
    let outcome = try run([Self.products + "/bucketfs", "mount", source, mountpoint] + more)
    try #require(outcome.code == 0, "\(outcome.error)")
    try #require(isMounted)
  }

  func status() throws -> [String: Any] {
    let outcome = try bucketfs("status", mountpoint, "--json")
    try #require(outcome.code == 0, "\(outcome.error)")
    return try outcome.object()
  }

  /// The process that serves the mount.
  func pid() throws -> Int32 { Int32(try #require(try status()["pid"] as? Int)) }

  func unmount() throws {
    let outcome = try bucketfs("unmount", mountpoint)
    try #require(outcome.code == 0, "\(outcome.error)")
    #expect(!isMounted)
  }

  /// Kills the process that serves the mount, and waits until it is gone.
  func killMount() throws {
    let pid = try pid()
    #expect(kill(pid, SIGKILL) == 0)
    #expect(eventually { hasEnded(pid) })
  }

  /// The path of the mount's control socket; nil when there is none.
  var socketPath: String? {
    let folder = scratch.path("run/bucketfs")
    let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
    return names?.first { $0.hasSuffix(".sock") }.map { folder + "/" + $0 }
  }
}

/// Waits, ten seconds at the most, until something holds.
func eventually(_ holds: () -> Bool) -> Bool {
  for _ in 0..<1000 {
    if holds() { return true }
    usleep(10_000)
  }
  return false
}

/// Whether a process has ended; one that its parent has not waited for yet has.
func hasEnded(_ pid: Int32) -> Bool {
  guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8) else {
    return true
  }
  return text.contains(") Z ")
}

/// A program that was started.
final class Running {
  private let process = Process()
  private let ended = Locked(false)
  private let outputPath: String
  private let errorPath: String

  init(_ words: [String], environment: [String: String], in scratch: Scratch) throws {
    outputPath = scratch.path(UUID().uuidString)
    errorPath = scratch.path(UUID().uuidString)
    for path in [outputPath, errorPath] {
      try Data().write(to: URL(fileURLWithPath: path))
    }
    process.executableURL = URL(fileURLWithPath: words[0])
    process.arguments = Array(words.dropFirst())
    process.environment = environment
    process.currentDirectoryURL = URL(fileURLWithPath: scratch.path)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: outputPath))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errorPath))
    process.terminationHandler = { [ended] _ in
      ended.withLock { $0 = true }
      ended.wakeAll()
    }
    try process.run()
  }

  var pid: Int32 { process.processIdentifier }

  /// What it has written so far.
  var output: String { Self.text(outputPath) }

  func wait(_ timeout: Double = 60) throws -> Person.Outcome {
    let inTime = ended.wait(until: .now + .seconds(timeout)) { $0 ? true : nil } ?? false
    if !inTime { kill(pid, SIGKILL) }
    process.waitUntilExit()
    let signalled = process.terminationReason == .uncaughtSignal
    return Person.Outcome(
      code: inTime ? (signalled ? 128 : 0) + process.terminationStatus : -1, output: output,
      error: Self.text(errorPath))
  }

  private static func text(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
  }
}
