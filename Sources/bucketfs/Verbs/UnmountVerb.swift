import Glibc
import Mount
import Platform

/// `bucketfs unmount`: takes a mount away and waits until its process has ended.
enum UnmountVerb {
  /// How long the process may take to end after the mount is gone.
  private static let patience = Span.seconds(30)

  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    for operand in invocation.operands {
      let path = try MountedPath(operand, in: mounts)
      guard path.inside.isEmpty else {
        throw Complaint(
          .usage, "\(operand) is in a mount, but is no mount point",
          hint: "bucketfs unmount \(path.mount.path)")
      }
      let process = try unmount(path.mount)
      if invocation.json {
        try Console.print(
          JSON.line(UnmountReport(mountpoint: path.mount.path.description, pid: process)))
      }
    }
    return .done
  }

  /// - Returns: the process that served the mount; nil when it was gone or did not say.
  private static func unmount(_ mount: MountEntry) throws(Complaint) -> Int32? {
    let (process, dead) = try server(of: mount)
    guard let place = mount.path.string else {
      throw Complaint(.usage, "\(mount.path) is not UTF-8 text")
    }
    do throws(MountError) {
      try Unmount.run(place, lazily: dead)
    } catch {
      throw Complaint(error)
    }
    if let process { try wait(for: process, mount) }
    return process
  }

  private static func server(of mount: MountEntry) throws(Complaint) -> (pid: Int32?, dead: Bool) {
    do throws(Complaint) {
      guard case .status(let report) = try ControlClient.ask(mount, ControlRequest(.status)) else {
        return (nil, false)
      }
      return (report.pid, false)
    } catch {
      if error.code == .refused { throw error }
      // A mount that cannot answer is unmounted all the same.
      return (nil, error == .dead(mount))
    }
  }

  /// Whether a process is there and has not ended: one that nobody has waited for yet has.
  private static func isRunning(_ process: Int32) -> Bool {
    let text: [UInt8]
    do throws(Errno) {
      text = try File("/proc/\(process)/stat", O_RDONLY).readToEnd()
    } catch {
      // Gone, or gone while it was read.
      return false
    }
    // The state follows the name, which stands in parentheses and may hold any (proc_pid_stat(5)).
    guard let end = text.lastIndex(of: UInt8(ascii: ")")), end + 2 < text.count else {
      return false
    }
    return text[end + 2] != UInt8(ascii: "Z") && text[end + 2] != UInt8(ascii: "X")
  }

  private static func wait(for process: Int32, _ mount: MountEntry) throws(Complaint) {
    let deadline = Instant.now + patience
    // Another mount namespace may hold the mount on, so that the kernel tells the process nothing.
    let reminder = Instant.now + .seconds(3)
    var isReminded = false
    while isRunning(process) {
      if !isReminded, Instant.now > reminder {
        isReminded = true
        // It fails when the process has just ended, which is what is wanted.
        _ = kill(process, SIGTERM)
      }
      guard Instant.now < deadline else {
        throw Complaint(
          .failed, "\(mount.path) is unmounted, but its process \(process) has not ended yet")
      }
      usleep(5_000)
    }
  }
}

/// What `unmount --json` says.
struct UnmountReport: Codable, Equatable, Sendable {
  let mountpoint: String
  /// The process that served it and has ended; null when it was gone before.
  @Nullable var pid: Int32?
}
