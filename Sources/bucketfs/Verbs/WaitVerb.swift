import Mount
import Platform

/// `bucketfs wait`: until the store has everything, or cannot have it.
enum WaitVerb {
  /// How many failed files are named.
  private static let named = 10

  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    var code = ExitCode.done
    for operand in invocation.operands {
      let mount = try MountedPath(operand, in: mounts).mount
      let report = try wait(for: mount, invocation.timeout)
      if invocation.json { try Console.print(JSON.line(report)) }
      code = code.worse(report.code)
    }
    return code
  }

  /// Waits, and tells a person why it was in vain.
  static func wait(for mount: MountEntry, _ timeout: Span?) throws(Complaint) -> WaitReport {
    var request = ControlRequest(.wait)
    request.timeout = timeout?.seconds
    guard case .waited(let report) = try ControlClient.ask(mount, request) else {
      throw .otherAnswer(mount)
    }
    if let complaint = try complaint(report, mount) { Console.remark(complaint.text) }
    return report
  }

  private static func complaint(_ report: WaitReport, _ mount: MountEntry) throws(Complaint)
    -> Complaint?
  {
    let count = report.queue.unsentText
    switch report.outcome {
    case "stored": return nil
    case "failed":
      try tellFailed(mount)
      return Complaint(
        .failed, "\(mount.path): \(Count.files(report.queue.failed)) could not be uploaded",
        hint: "bucketfs queue \(mount.path) lists all that is pending")
    case "offline":
      return Complaint(
        .offline, "\(mount.path): \(count) not uploaded: \(report.reason ?? "offline")",
        hint: try queue(of: mount).isSwitchedOff
          ? "bucketfs online \(mount.path) switches it on"
          : "it goes on by itself once that has changed")
    default:
      return Complaint(
        .offline, "\(mount.path): the time is over, and \(count) not uploaded yet",
        hint: "bucketfs queue --watch \(mount.path) shows how it goes on")
    }
  }

  private static func queue(of mount: MountEntry) throws(Complaint) -> QueueAnswer {
    guard case .queue(let answer) = try ControlClient.ask(mount, ControlRequest(.queue)) else {
      throw .otherAnswer(mount)
    }
    return answer
  }

  /// Names the files that could not be uploaded, why, and what to do.
  private static func tellFailed(_ mount: MountEntry) throws(Complaint) {
    for record in try queue(of: mount).records.filter({ $0.state == "failed" }).prefix(named) {
      Console.remark(
        Complaint(
          .failed, "\(record.name): \(record.reason ?? "not uploaded")", hint: record.advice
        ).text)
    }
  }
}
