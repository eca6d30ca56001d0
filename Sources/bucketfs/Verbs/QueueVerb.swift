import Glibc
import Mount
import Platform

/// `bucketfs queue`: what the store does not have yet, once or again and again.
enum QueueVerb {
  /// How often a watched queue is looked at.
  private static let pace = Span.milliseconds(500)
  /// How many records a watched queue shows.
  private static let shown = 20

  static func run(_ invocation: Invocation) throws(Complaint) -> ExitCode {
    let mounts = try Mounts.read()
    for operand in invocation.operands {
      let path = try MountedPath(operand, in: mounts)
      if invocation.watch { return try watch(path, json: invocation.json) }
      let answer = try ask(path, limit: nil)
      if invocation.json {
        try Console.print(JSON.line(answer.records))
      } else {
        try Console.print(text(answer))
      }
    }
    return .done
  }

  private static func ask(_ path: MountedPath, limit: Int?) throws(Complaint) -> QueueAnswer {
    var request = ControlRequest(.queue)
    request.limit = limit
    guard case .queue(let answer) = try ControlClient.ask(path.mount, request) else {
      throw .otherAnswer(path.mount)
    }
    return answer
  }

  private static func text(_ answer: QueueAnswer) -> String {
    guard !answer.records.isEmpty else { return "" }
    return QueueReport.heading + answer.records.map(\.text).joined()
  }

  /// Shows the queue whenever it changes, until nothing is left to be sent.
  private static func watch(_ path: MountedPath, json: Bool) throws(Complaint) -> ExitCode {
    let isTerminal = isatty(STDOUT_FILENO) == 1
    var last: QueueAnswer?
    var lines = 0
    while true {
      let answer = try ask(path, limit: json ? nil : shown)
      if answer != last {
        if json {
          try Console.print(JSON.line(answer.records))
        } else {
          let text = block(answer)
          // Over what was shown before: up so many lines, then clear to the end (ECMA-48).
          let start = isTerminal && lines > 0 ? "\u{1B}[\(lines)A\u{1B}[J" : ""
          try Console.print(start + text)
          lines = text.count { $0 == "\n" }
        }
        last = answer
      }
      if answer.counts.unsent == 0 { return answer.counts.failed == 0 ? .done : .failed }
      _ = Cancellation().sleep(until: .now + pace)
    }
  }

  /// The sum, and the files that are on their way or failed.
  private static func block(_ answer: QueueAnswer) -> String {
    answer.counts.text + (answer.obstacle.map { "; \($0)" } ?? "") + "\n"
      + answer.records.filter { $0.state == "uploading" || $0.state == "failed" }.map(\.text)
      .joined()
  }
}

extension Complaint {
  /// The process that serves a mount does not speak as this one does.
  static func otherAnswer(_ mount: MountEntry) -> Complaint {
    Complaint(.failed, "\(mount.path): its process gives another answer than asked for")
  }
}
