import BucketStore
import FileCache
import FileSystem
import Foundation
import Mount
import Platform
import Testing
import TestSupport

/// Every test that mounts, one after the other: they watch what the process holds.
@Suite(
  .serialized, .enabled(if: Mounted.isPossible, "/dev/fuse or the right to mount is missing"),
  .timeLimit(.minutes(5)))
enum MountTests {}

/// A real mount in this process, over a store of the test's choosing.
///
/// `use` checks afterwards that nothing is left: no mount, no descriptor of the channel or of a file
/// in the test's folder, and no warning in the log that the test did not announce.
final class Mounted {
  /// Whether this process may mount at all.
  static var isPossible: Bool {
    access("/dev/fuse", R_OK | W_OK) == 0
      && (geteuid() == 0 || access("/usr/bin/fusermount3", X_OK) == 0)
  }

  let path: String
  let fileSystem: FileSystem
  private let session: MountSession
  private let runner: Platform.Thread
  private let runnerID = Locked<pthread_t?>(nil)
  private let ending = Locked<Result<MountSession.Ending, MountError>?>(nil)
  private let log: WatchedLog

  /// Mounts, runs `body`, unmounts and looks for what is left.
  static func use(
    _ store: any BucketStore, at scratch: Scratch, expecting announced: [String] = [],
    maxAge: Span = .seconds(1), abandoning: Bool = false,
    options change: (inout MountOptions) -> Void = { _ in },
    _ body: (Mounted) throws -> Void
  ) throws {
    let before = try descriptors(below: scratch.path)
    try run(
      try Mounted(scratch, announced, change) { try Self.fileSystem(store, scratch, maxAge) }, body)
    if abandoning {
      // The channel, and all that may still answer through it, stay until the process ends.
      #expect(try descriptors(below: scratch.path).contains("/dev/fuse"))
      return
    }
    try expectNothingLeft(since: before, scratch)
  }

  /// The same, of a mount that can be written to.
  static func write(
    _ store: any WritableStore, at scratch: Scratch, _ writing: Writing? = nil,
    expecting announced: [String] = [], maxAge: Span = .seconds(1), _ body: (Mounted) throws -> Void
  ) throws {
    let before = try descriptors(below: scratch.path)
    let writing = writing ?? Writing(directory: scratch.path("data"))
    try run(
      try Mounted(scratch, announced, { $0.readOnly = false }) {
        try Self.fileSystem(store, scratch, maxAge, writing)
      }, body)
    try expectNothingLeft(since: before, scratch)
  }

  private static func expectNothingLeft(since before: [String], _ scratch: Scratch) throws {
    // The last threads of the cache let go of it a little later than it is closed.
    let deadline = Instant.now + .seconds(10)
    while try descriptors(below: scratch.path) != before, Instant.now < deadline {
      usleep(10_000)
    }
    let left = try descriptors(below: scratch.path)
    #expect(left == before, "descriptors were left open")
  }

  private static func run(_ mounted: consuming Mounted, _ body: (Mounted) throws -> Void) throws {
    do {
      try body(mounted)
    } catch {
      try mounted.close()
      throw error
    }
    try mounted.close()
  }

  private init(
    _ scratch: Scratch, _ announced: [String], _ change: (inout MountOptions) -> Void,
    _ makeFileSystem: () throws -> FileSystem
  ) throws {
    path = scratch.path("mount")
    // It may be there already, and be a dead mount.
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw Errno.last }
    log = WatchedLog(announced)
    fileSystem = try makeFileSystem()
    var options = MountOptions(mountPoint: path, source: "test")
    change(&options)
    let isReady = Locked(false)
    session = MountSession(fileSystem: fileSystem, options: options) {
      isReady.withLock { $0 = true }
      isReady.wakeAll()
    }
    runner = try Platform.Thread(name: "fuse-runner") { [session, ending, runnerID] in
      let me = pthread_self()
      runnerID.withLock { $0 = me }
      do throws(MountError) {
        let result = try session.run()
        ending.withLock { $0 = .success(result) }
      } catch {
        ending.withLock { $0 = .failure(error) }
      }
      isReady.wakeAll()
    }
    _ = isReady.wait(until: .now + .seconds(20)) { [ending] in
      $0 || ending.withLock { $0 != nil } ? true : nil
    }
    if let failed = ending.withLock({ $0 }) {
      log.stop()
      fileSystem.queue?.close()
      fileSystem.close()
      _ = try failed.get()
    }
  }

  /// How the mount ended; nil while it runs.
  var result: MountSession.Ending? {
    get throws { try ending.withLock { $0 }?.get() }
  }

  /// Sends a signal to the thread that serves, as the kernel does when a person presses Ctrl-C.
  func signal(_ signal: CInt) {
    if let thread = runnerID.withLock({ $0 }) { pthread_kill(thread, signal) }
  }

  /// Stops serving, as a signal would, without waiting for the end.
  func stop() { session.stop() }

  /// Waits for the end.
  func join(within seconds: Double) -> Bool { runner.join(until: .now + .seconds(seconds)) }

  private func close() throws {
    session.stop()
    #expect(join(within: 30), "the mount does not end")
    fileSystem.queue?.close()
    fileSystem.close()
    log.stop()
    #expect(log.unannounced == [])
    #expect(try MountTable.entry(at: ByteString(path)) == nil, "a mount was left behind")
  }

  /// What this process has open of the channel to the kernel and below a folder.
  private static func descriptors(below path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { number in
      // The listing's own descriptor is gone by now.
      let target = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(number)")
      guard let target, target == "/dev/fuse" || target.hasPrefix(path) else { return nil }
      return target
    }.sorted()
  }
}

extension Mounted: CustomReflectable {
  /// Nothing: a failed expectation would else describe the whole program below the mount.
  var customMirror: Mirror { Mirror(self, children: []) }
}

/// Listens to what the mount's own threads log.
private final class WatchedLog: Sendable {
  private let lines = Locked<[String]>([])
  private let announced: [String]

  init(_ announced: [String]) {
    self.announced = announced
    Log.observer.withLock { observer in
      observer = { [lines] level, message in
        guard level >= .warning, Self.threadName.hasPrefix("fuse") else { return }
        lines.withLock { $0.append(message) }
      }
    }
  }

  func stop() { Log.observer.withLock { $0 = nil } }

  var unannounced: [String] {
    lines.withLock { $0 }.filter { line in !announced.contains { line.contains($0) } }
  }

  /// Other suites run beside this one, on threads with other names.
  private static var threadName: String {
    let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
    return name ?? ""
  }
}
