import Glibc
import Platform

/// `bucketfs mount`: decides everything, then serves, here or in the background.
enum MountVerb {
  static func run(_ invocation: Invocation, _ arguments: [ByteString]) throws(Complaint) -> ExitCode
  {
    let source = invocation.operands.count == 2 ? try Invocation.text(invocation.operands[0]) : nil
    let plan = try MountPlan(
      source: source, lists: invocation.options, sloppy: invocation.sloppy)
    guard let operand = invocation.operands.last else {
      throw Complaint(.usage, "no mount point is given")
    }
    let mountpoint = try Invocation.text(operand)
    if invocation.fake { return .done }
    let service = try Service(plan, at: mountpoint, log: nil)
    return try service.run {
      guard invocation.json else { return }
      let report = MountReport(
        mountpoint: service.mountpoint, pid: getpid(), source: plan.source)
      do throws(Complaint) {
        try Console.print(JSON.line(report))
      } catch {
        Log.warning("\(error.sentence)")
      }
    }
  }
}
