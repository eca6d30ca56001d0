/// How the program ends: the numbers that the man page promises.
enum ExitCode: Int32, CaseIterable, Codable, Sendable {
  /// Done as asked.
  case done = 0
  /// The answer is no: no copy is kept, or there is no such object, bucket or mount.
  case no = 1
  /// The command line, the configuration or a path is wrong; nothing was done.
  case usage = 2
  /// Something was begun and failed.
  case failed = 3
  /// The network is gone or switched off, or the time is over.
  case offline = 4
  /// The store, the system or another mount refuses it.
  case refused = 5

  /// What the man page and the help say of it.
  var meaning: String {
    switch self {
    case .done: "done"
    case .no: "the answer is no: no copy, no such object, bucket or mount"
    case .usage: "wrong usage: the command line, the configuration or a path"
    case .failed: "something failed"
    case .offline: "offline, or out of time"
    case .refused: "refused: by the store, the system, or another mount"
    }
  }

  /// The one of two that says more is wrong.
  func worse(_ other: ExitCode) -> ExitCode { other.rawValue > rawValue ? other : self }
}
