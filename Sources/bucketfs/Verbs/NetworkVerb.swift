/// `bucketfs offline` and `bucketfs online`: switch a mount's network access.
enum NetworkVerb {
  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    for operand in invocation.operands {
      let mount = try MountedPath(operand, in: mounts).mount
      let reply = try ControlClient.ask(mount, ControlRequest(invocation.verb))
      if invocation.json, case .status(let report) = reply {
        try Console.print(JSON.line(report))
      }
    }
    return .done
  }
}
