import Glibc
import Mount
import Platform

/// `bucketfs mount`: decides everything, then serves, here or in the background.
enum MountVerb {
  static func run(_ invocation: Invocation, _ arguments: [ByteString]) throws(Complaint) -> ExitCode
  {
    guard let status = Daemon.adopt() else {
      let (plan, mountpoint) = try decide(invocation)
      if invocation.fake { return .done }
      if invocation.foreground || plan.settings.foreground {
        return try serve(plan, mountpoint, invocation)
      }
      return try start(plan, mountpoint, invocation, arguments)
    }
    do throws(Complaint) {
      let (plan, mountpoint) = try decide(invocation)
      return try serve(plan, mountpoint, status)
    } catch {
      // The process that started this one says it, in its own way.
      status.failed(
        code: error.code.rawValue,
        text: String(decoding: JSON.encode(ErrorReport(error)), as: UTF8.self))
      return error.code
    }
  }

  private static func decide(_ invocation: Invocation) throws(Complaint) -> (MountPlan, String) {
    let operands = invocation.operands
    guard let last = operands.last, !last.isEmpty else {
      throw Complaint(
        .usage, operands.isEmpty ? "no mount point is given" : "the mount point is empty")
    }
    let source = operands.count == 2 ? try Invocation.text(operands[0]) : nil
    if source != nil, Source.hasKind(last) {
      throw Complaint(
        .usage, "\(last) is a source, not a mount point",
        hint: "the source comes first: bucketfs mount \(last) \(operands[0])")
    }
    let plan = try MountPlan(
      source: source, lists: invocation.options, sloppy: invocation.sloppy)
    let typed = try Invocation.text(last)
    let mountpoint: String
    do throws(MountError) {
      mountpoint = try MountPoint.canonical(typed)
    } catch {
      throw Complaint(error)
    }
    try plan.refusePlaces(inside: mountpoint)
    return (plan, mountpoint)
  }

  /// Serves in the foreground, with the log on standard error unless told otherwise.
  private static func serve(_ plan: MountPlan, _ mountpoint: String, _ invocation: Invocation)
    throws(Complaint) -> ExitCode
  {
    let journal = plan.settings.logFile.isEmpty ? nil : plan.settings.logFile
    if let journal { try Journal.prepare(journal) }
    let service = try Service(plan, at: mountpoint, log: journal)
    return try service.run {
      do throws(Complaint) {
        if let journal { try Journal.redirect(to: journal) }
        if invocation.json { try report(getpid(), mountpoint, plan) }
      } catch {
        Log.error(error.sentence)
      }
    }
  }

  /// Serves in the background, once the process that started this one has been told.
  private static func serve(_ plan: MountPlan, _ mountpoint: String, _ status: DaemonStatus)
    throws(Complaint) -> ExitCode
  {
    let journal: String
    if plan.settings.logFile.isEmpty {
      try plan.prepareDataFolder()
      journal = plan.dataDirectory + "/log"
    } else {
      journal = plan.settings.logFile
    }
    try Journal.prepare(journal)
    let service = try Service(plan, at: mountpoint, log: journal)
    return try service.run {
      var isLogged = true
      do throws(Complaint) {
        try Journal.redirect(to: journal)
      } catch {
        // The mount is up, and worth more than its log.
        Console.remark("bucketfs: \(error.sentence)\n")
        isLogged = false
      }
      do throws(Errno) {
        try status.ready(keepsErrors: isLogged)
      } catch {
        Log.error("the mount cannot let go of its terminal: \(error)")
      }
    }
  }

  private static func start(
    _ plan: MountPlan, _ mountpoint: String, _ invocation: Invocation, _ arguments: [ByteString]
  ) throws(Complaint) -> ExitCode {
    let outcome: Daemon.Outcome
    do throws(Errno) {
      outcome = try Daemon.start(arguments)
    } catch {
      throw Complaint(.failed, "the background process cannot be started: \(error)")
    }
    switch outcome {
    case .ready(let process):
      if invocation.json { try report(process, mountpoint, plan) }
      return .done
    case .failed(_, let text):
      guard let report = JSON.decode(ErrorReport.self, from: Array(text.utf8)) else {
        throw Complaint(.failed, "\(mountpoint) could not be mounted: \(text)")
      }
      throw Complaint(report.exit, report.error, hint: report.hint)
    case .died(let code):
      throw Complaint(
        .failed, "\(mountpoint) could not be mounted: the background process ended (\(code))",
        hint: "bucketfs mount -f shows why")
    }
  }

  private static func report(_ process: Int32, _ mountpoint: String, _ plan: MountPlan)
    throws(Complaint)
  {
    let report = MountReport(mountpoint: mountpoint, pid: process, source: plan.source)
    try Console.print(JSON.line(report))
  }
}
