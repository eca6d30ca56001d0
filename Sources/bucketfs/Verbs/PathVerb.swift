import Platform

/// `bucketfs cached`, `ensure` and `info`: something about each of the named objects.
enum PathVerb {
  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    var code = ExitCode.done
    for operand in invocation.operands {
      do throws(Complaint) {
        try Console.print(try answer(invocation, operand, mounts))
      } catch {
        // One path that fails leaves the others their answers.
        code = code.worse(error.code)
        Console.remark(error.text)
        if invocation.json { try Console.print(JSON.line(ErrorReport(error))) }
      }
    }
    return code
  }

  private static func answer(_ invocation: Invocation, _ operand: ByteString, _ mounts: Mounts)
    throws(Complaint) -> String
  {
    let path = try MountedPath(operand, in: mounts)
    guard !path.inside.isEmpty else {
      throw Complaint(.usage, "\(operand) is the mount itself", hint: "name a file in it")
    }
    let request = ControlRequest(invocation.verb, path: path.inside)
    switch try ControlClient.ask(path.mount, request) {
    case .copy(let report): return invocation.json ? JSON.line(report) : report.text
    case .object(let report): return invocation.json ? JSON.line(report) : report.text
    default:
      throw .otherAnswer(path.mount)
    }
  }
}
