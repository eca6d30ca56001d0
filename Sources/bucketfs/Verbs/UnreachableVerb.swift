/// `bucketfs unreachable`: the objects that cannot be shown, since their keys cannot be paths.
enum UnreachableVerb {
  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    for operand in invocation.operands {
      let mount = try MountedPath(operand, in: mounts).mount
      guard case .hidden(let keys) = try ControlClient.ask(mount, ControlRequest(.unreachable))
      else {
        throw .otherAnswer(mount)
      }
      for key in keys { try Console.print(invocation.json ? JSON.line(key) : key.text) }
    }
    return .done
  }
}
