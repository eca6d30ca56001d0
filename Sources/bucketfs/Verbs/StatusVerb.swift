import Glibc
import Mount
import Platform

/// `bucketfs status`: the state of one mount, or of every mount there is.
enum StatusVerb {
  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    let chosen: [MountEntry]
    if let operand = invocation.operands.first {
      chosen = [try MountedPath(operand, in: mounts).mount]
    } else {
      // Those of other users are not ours to ask.
      chosen = mounts.ours.filter { geteuid() == 0 || $0.user ?? geteuid() == geteuid() }
      guard !chosen.isEmpty else { throw Complaint(.no, "nothing is mounted") }
    }
    var code = ExitCode.done
    for mount in chosen {
      let (report, problem) = try report(of: mount)
      if let problem {
        code = code.worse(problem.code)
        Console.remark(problem.text)
      }
      try Console.print(invocation.json ? JSON.line(report) : report.text)
    }
    return code
  }

  /// Asks the mount; of one that cannot answer, what is known without it.
  private static func report(of mount: MountEntry) throws(Complaint) -> (StatusReport, Complaint?) {
    do throws(Complaint) {
      guard case .status(let report) = try ControlClient.ask(mount, ControlRequest(.status)) else {
        throw .otherAnswer(mount)
      }
      return (report, nil)
    } catch {
      let state =
        switch error.code {
        case .failed: "dead"
        case .refused: "foreign"
        default: "silent"
        }
      let report = StatusReport(
        state: state, mountpoint: mount.path.description, source: mount.source)
      return (report, error)
    }
  }
}
