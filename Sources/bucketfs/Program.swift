import Glibc
import Platform

/// The program: understands its command line, does it, and says how it ended.
enum Program {
  /// Runs with the arguments of the process, the program's name first.
  static func run(_ arguments: [ByteString]) -> ExitCode {
    // A closed pipe is an error of the write that meets it, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    let words = arguments.dropFirst()
    do throws(Complaint) {
      if name(of: arguments) == "mount.bucketfs" {
        return try MountVerb.run(try Invocation.readHelper(words), arguments)
      }
      return try dispatch(words, arguments)
    } catch {
      Console.remark(error.text)
      guard words.contains("--json") else { return error.code }
      do throws(Complaint) {
        try Console.print(JSON.line(ErrorReport(error)))
      } catch {
        Console.remark(error.text)
      }
      return error.code
    }
  }

  private static func name(of arguments: [ByteString]) -> ByteString {
    arguments.first?.split(at: ByteString.slash).last ?? ByteString()
  }

  private static func dispatch(_ words: ArraySlice<ByteString>, _ arguments: [ByteString])
    throws(Complaint) -> ExitCode
  {
    guard let first = words.first else {
      throw Complaint(.usage, "no verb is given", hint: "bucketfs --help lists them")
    }
    switch first.string {
    case Flag.help.rawValue, Flag.help.alias, "help":
      try Console.print(Help.program)
      return .done
    case Flag.version.rawValue, Flag.version.alias:
      let json = words.contains("--json")
      try Console.print(json ? JSON.line(["version": Help.version]) : "bucketfs \(Help.version)\n")
      return .done
    default: break
    }
    guard let verb = first.string.flatMap(Verb.init(rawValue:)) else {
      let near = Spelling.nearest(
        to: first.description, among: Verb.allCases.map(\.rawValue))
      throw Complaint(
        .usage, "unknown verb \(first)",
        hint: near.map { "did you mean \($0)?" } ?? "bucketfs --help lists them")
    }
    guard case .run(let invocation) = try Invocation.read(verb, words.dropFirst()) else {
      try Console.print(Help.verb(verb))
      return .done
    }
    switch verb {
    case .mount: return try MountVerb.run(invocation, arguments)
    case .unmount: return try UnmountVerb.run(invocation)
    case .status: return try StatusVerb.run(invocation)
    case .offline, .online: return try NetworkVerb.run(invocation)
    case .cached, .ensure, .info: return try PathVerb.run(invocation)
    case .queue: return try QueueVerb.run(invocation)
    case .retry, .remove: return try PendingVerb.run(invocation)
    case .wait: return try WaitVerb.run(invocation)
    case .clear: return try ClearVerb.run(invocation)
    case .unreachable: return try UnreachableVerb.run(invocation)
    }
  }
}
