/// `bucketfs clear`: removes copies and listings, and pending files only where told.
enum ClearVerb {
  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    for operand in invocation.operands {
      let mount = try MountedPath(operand, in: mounts).mount
      var request = ControlRequest(.clear)
      request.pending = invocation.pending
      guard case .cleared(let report) = try ControlClient.ask(mount, request) else {
        throw .otherAnswer(mount)
      }
      try Console.print(invocation.json ? JSON.line(report) : report.text)
    }
    return .done
  }
}
