import CLinux
import Glibc
package import Platform

/// Starts this program again in the background, and waits until its mount is up.
///
/// It starts itself anew instead of forking: nothing that was opened or started here crosses over,
/// so it does not matter what ran before. The new process has the same arguments and environment,
/// so credentials travel in files and variables, never in arguments.
package enum Daemon {
  /// How the start went.
  package enum Outcome: Sendable, Equatable {
    /// The mount is up, served by this process.
    case ready(process: Int32)
    /// It is not; the code to exit with, and the lines for the person.
    case failed(code: Int32, text: String)
    /// The process ended without a word.
    case died(code: Int32)
  }

  static let variable = "BUCKETFS_STATUS_FD"

  /// Starts the background process and waits for its word.
  ///
  /// - Parameters:
  ///   - arguments: those of this process, the program's name first.
  ///   - keeping: descriptors that the new process inherits beside the standard three; every other
  ///     one is closed there, so that no pipe or lock of the caller stays held.
  /// - Throws: `Errno` when it cannot be started.
  package static func start(_ arguments: [ByteString], keeping: [CInt] = []) throws(Errno)
    -> Outcome
  {
    var ends: [CInt] = [-1, -1]
    try check { bucketfs_pipe2(&ends, O_CLOEXEC) }
    let reading = File(owning: ends[0])
    let writing = ends[1]
    closeOnStart()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // Onto itself: that is how a descriptor is left open (posix_spawn_file_actions_adddup2(3)).
    for descriptor in [writing] + keeping {
      posix_spawn_file_actions_adddup2(&actions, descriptor, descriptor)
    }
    var process = pid_t()
    let code = Command.spawn(
      &process, executable, arguments, &actions, adding: "\(variable)=\(writing)")
    close(writing)
    guard code == 0 else { throw Errno(code) }
    let word = try reading.readToEnd()
    guard let kind = word.first else {
      return .died(code: try Command.exitCode(of: process))
    }
    if kind == DaemonStatus.ready { return .ready(process: process) }
    // Once it has ended, its cache and its mount point are free again.
    _ = try Command.exitCode(of: process)
    let parts = word.dropFirst().split(separator: 0, maxSplits: 1)
    let number = parts.first.flatMap { Int32(String(decoding: $0, as: UTF8.self)) }
    return .failed(
      code: number ?? 1,
      text: parts.count > 1 ? String(decoding: parts[1], as: UTF8.self) : "")
  }

  /// The line to the process that started this one; nil when none did.
  ///
  /// Called once, early: children of this process shall not inherit it.
  package static func adopt() -> DaemonStatus? {
    guard let value = getenv(variable) else { return nil }
    unsetenv(variable)
    guard let descriptor = CInt(ByteString(cString: value).description), descriptor > 2,
      fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
    else { return nil }
    return DaemonStatus(File(owning: descriptor))
  }

  /// The program's file; its own name rather than `exe` is what ps(1) then shows.
  private static var executable: String {
    var target = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &target, target.count)
    guard count > 0, count < target.count else { return "/proc/self/exe" }
    let path = String(
      decoding: target.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    return access(path, X_OK) == 0 ? path : "/proc/self/exe"
  }

  /// Marks every descriptor but the standard three to be closed in programs started from here.
  private static func closeOnStart() {
    // 4 is CLOSE_RANGE_CLOEXEC (Linux 5.11). An older kernel refuses, and they are inherited, which
    // holds them open and does no other harm.
    _ = bucketfs_close_range(3, .max, 4)
  }
}

/// What the background process tells the one that started it: one word, once.
package final class DaemonStatus: Sendable {
  static let ready = UInt8(ascii: "R")
  static let failed = UInt8(ascii: "F")

  private let pipe: Locked<File?>

  init(_ pipe: consuming File) {
    self.pipe = Locked(pipe)
  }

  /// Says that the mount is up, and lets go of terminal, session, folder and standard streams.
  ///
  /// Paths must be absolute from here on.
  /// - Parameter keepsErrors: whether standard error stays, since it leads to a log already.
  /// - Throws: `Errno`; nothing has been told then.
  package func ready(keepsErrors: Bool) throws(Errno) {
    let null = try File("/dev/null", O_RDWR)
    // Fails for the leader of a group, which has a session of its own then.
    setsid()
    try check { chdir("/") }
    for stream: CInt in keepsErrors ? [0, 1] : [0, 1, 2] { dup2(null.descriptor, stream) }
    tell([Self.ready])
  }

  /// Says that it did not come up.
  ///
  /// - Parameters:
  ///   - code: what the starting process exits with.
  ///   - text: the lines for the person.
  package func failed(code: Int32, text: String) {
    tell([Self.failed] + Array("\(code)".utf8) + [0] + Array(text.utf8))
  }

  private func tell(_ word: [UInt8]) {
    guard let pipe = pipe.withLock({ $0.take() }) else { return }
    // Nobody may be listening any more: the mount stays up all the same.
    _ = word.withUnsafeBytes { write(pipe.descriptor, $0.baseAddress, $0.count) }
  }
}
