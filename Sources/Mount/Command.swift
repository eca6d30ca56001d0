import CLinux
import Glibc
import Platform

/// Runs another program to its end and gives back what it said.
enum Command {
  struct Outcome {
    /// The exit code; 128 and the signal's number when a signal ended it.
    var code: CInt
    /// Standard output and standard error together.
    var words: String
  }

  /// Runs a program with an empty standard input.
  ///
  /// - Throws: `Errno` when it cannot be started.
  static func run(_ path: String, _ arguments: [ByteString]) throws(Errno) -> Outcome {
    var ends: [CInt] = [-1, -1]
    try check { bucketfs_pipe2(&ends, O_CLOEXEC) }
    let output = File(owning: ends[0])
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
    var process = pid_t()
    let code = spawn(&process, path, [ByteString(path)] + arguments, &actions)
    close(ends[1])
    guard code == 0 else { throw Errno(code) }
    let words = try output.readToEnd()
    return Outcome(
      code: try exitCode(of: process),
      words: String(decoding: words, as: UTF8.self).trimmed)
  }

  /// Starts a program with our environment, with no signal blocked and SIGPIPE at its default.
  ///
  /// - Parameter variable: one more environment variable, as `NAME=value`.
  /// - Returns: 0, or an error number (posix_spawn(3)).
  static func spawn(
    _ process: inout pid_t, _ path: String, _ arguments: [ByteString],
    _ actions: inout posix_spawn_file_actions_t, adding variable: String? = nil
  ) -> CInt {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var words = arguments.map { $0.withCString { strdup($0) } } + [nil]
    defer { for word in words { free(word) } }
    let extra = variable.flatMap { strdup($0) }
    defer { free(extra) }
    var variables: [UnsafeMutablePointer<CChar>?] = extra.map { [$0] } ?? []
    var next = bucketfs_environment()
    while let entry = next?.pointee {
      variables.append(entry)
      next = next?.successor()
    }
    variables.append(nil)
    return posix_spawn(&process, path, &actions, &attributes, &words, &variables)
  }

  /// Waits for a child's end.
  static func exitCode(of process: pid_t) throws(Errno) -> CInt {
    var status: CInt = 0
    try check { waitpid(process, &status, 0) }
    let signal = status & 0x7f
    return signal == 0 ? (status >> 8) & 0xff : 128 + signal
  }
}

extension String {
  /// Without blanks and line ends at both ends.
  var trimmed: String {
    var rest = self[...]
    while rest.first?.isWhitespace == true { rest = rest.dropFirst() }
    while rest.last?.isWhitespace == true { rest = rest.dropLast() }
    return String(rest)
  }
}
