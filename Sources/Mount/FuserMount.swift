import Glibc
import Platform

/// fusermount3(1), which mounts and unmounts for ordinary users.
enum FuserMount {
  /// Where it is installed; nil when it is not.
  ///
  /// mount(8) gives its helpers no PATH, so the usual places are looked at first.
  static var path: String? {
    var folders = ["/usr/bin", "/bin", "/usr/local/bin"]
    if let search = getenv("PATH") {
      folders += ByteString(cString: search).description.split(separator: ":").map(String.init)
    }
    return folders.map { $0 + "/fusermount3" }.first { access($0, X_OK) == 0 }
  }

  /// Unmounts for an ordinary user.
  static func unmount(_ path: String, lazily: Bool) throws(MountError) {
    guard let program = Self.path else { throw .helperMissing }
    let arguments: [ByteString] = lazily ? ["-u", "-z"] : ["-u"]
    let outcome: Command.Outcome
    do throws(Errno) {
      outcome = try Command.run(program, arguments + ["--", ByteString(path)])
    } catch {
      throw .system("\(program) could not be started", error)
    }
    guard outcome.code != 0 else { return }
    if outcome.words.contains("busy") { throw .busy(path, users: MountUsers.names(of: path)) }
    throw .refused(path, outcome.words)
  }
}
