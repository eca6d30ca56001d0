import Platform

/// `bucketfs retry` and `bucketfs remove`: something done with the pending files of each path.
enum PendingVerb {
  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    var code = ExitCode.done
    for operand in invocation.operands {
      do throws(Complaint) {
        try change(invocation, operand, mounts)
      } catch {
        // One path that fails leaves the others their turn.
        code = code.worse(error.code)
        Console.remark(error.text)
        if invocation.json { try Console.print(JSON.line(ErrorReport(error))) }
      }
    }
    return code
  }

  private static func change(_ invocation: Invocation, _ operand: ByteString, _ mounts: Mounts)
    throws(Complaint)
  {
    let path = try MountedPath(operand, in: mounts)
    let request = ControlRequest(
      invocation.verb, path: path.inside.isEmpty ? nil : path.inside)
    guard case .changed(let report) = try ControlClient.ask(path.mount, request) else {
      throw .otherAnswer(path.mount)
    }
    let done = invocation.verb == .retry ? "tried again" : "removed"
    try Console.print(invocation.json ? JSON.line(report) : report.text(done))
  }
}
