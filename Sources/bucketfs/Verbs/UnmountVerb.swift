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
      let state = try server(of: path.mount)
      if invocation.drain, !state.isDead {
        let report = try WaitVerb.wait(for: path.mount, invocation.timeout)
        guard report.code == .done else {
          throw Complaint(
            report.code, "\(path.mount.path) stays mounted: not everything is uploaded",
            hint: "without --wait it is unmounted, and what is pending goes on at the next mount")
        }
      }
      // What was written to the last moment counts.
      let queue = try server(of: path.mount).queue
      try unmount(path.mount, state)
      if let queue, !invocation.drain || queue.unsent > 0 { tell(queue, path.mount) }
      if invocation.json {
        try Console.print(
          JSON.line(
            UnmountReport(
              mountpoint: path.mount.path.description, pid: state.pid, queue: queue)))
      }
    }
    return .done
  }

  /// Says what stays in the queue.
  private static func tell(_ queue: StatusReport.Queue, _ mount: MountEntry) {
    if queue.unsent > 0 {
      Console.remark(
        Complaint(
          .done,
          "\(mount.path): \(queue.unsentText) not uploaded yet: kept on this device, "
            + "and uploaded at the next mount"
        ).text)
    }
    if queue.failed > 0 {
      Console.remark(
        Complaint(
          .done,
          "\(mount.path): \(Count.files(queue.failed)) could not be uploaded: kept on this device",
          hint: "mount again, and bucketfs queue shows why"
        ).text)
    }
  }

  private static func unmount(_ mount: MountEntry, _ state: ServerState) throws(Complaint) {
    guard let place = mount.path.string else {
      throw Complaint(.usage, "\(mount.path) is not UTF-8 text")
    }
    do throws(MountError) {
      try Unmount.run(place, lazily: state.isDead)
    } catch {
      throw Complaint(error)
    }
    if let process = state.pid { try wait(for: process, mount) }
  }

  /// What is known of the process that serves a mount.
  private struct ServerState {
    /// nil when it is gone or did not say.
    var pid: Int32?
    var isDead = false
    /// What is pending; nil when it did not say.
    var queue: StatusReport.Queue?
  }

  private static func server(of mount: MountEntry) throws(Complaint) -> ServerState {
    do throws(Complaint) {
      guard case .status(let report) = try ControlClient.ask(mount, ControlRequest(.status)) else {
        return ServerState()
      }
      return ServerState(pid: report.pid, queue: report.queue)
    } catch {
      if error.code == .refused { throw error }
      // A mount that cannot answer is unmounted all the same.
      return ServerState(isDead: error == .dead(mount))
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
  /// What was pending when it was unmounted; null when nobody could say.
  @Nullable var queue: StatusReport.Queue?
}
