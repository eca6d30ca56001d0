import Glibc

/// The program's log: one line an event, on standard error.
///
/// Guarded by one write(2) a line, which the kernel keeps whole up to PIPE_BUF bytes.
package enum Log {
  /// How much a line matters, in rising order.
  package enum Level: Int, Sendable, Comparable {
    case debug
    case info
    case warning
    case error

    package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

    var label: String {
      switch self {
      case .debug: "debug"
      case .info: "info"
      case .warning: "warning"
      case .error: "error"
      }
    }
  }

  private struct Style {
    var level = Level.warning
    var showsTime = false
  }

  private static let style = Locked(Style())

  /// The least level that is written; `warning` at start.
  package static var level: Level {
    get { style.withLock { $0.level } }
    set { style.withLock { $0.level = newValue } }
  }

  /// Whether each line begins with its moment, as a file wants it; no at start.
  package static var showsTime: Bool {
    get { style.withLock { $0.showsTime } }
    set { style.withLock { $0.showsTime = newValue } }
  }

  /// Is shown every message on the thread that logs it, whatever the level; tests listen here.
  package static let observer = Locked<(@Sendable (Level, String) -> Void)?>(nil)

  /// For who looks for a fault.
  package static func debug(_ message: @autoclosure () -> String) { write(.debug, message) }
  /// What happened, for who asks to be told.
  package static func info(_ message: @autoclosure () -> String) { write(.info, message) }
  /// What a person should know, though the program goes on as it should.
  package static func warning(_ message: @autoclosure () -> String) { write(.warning, message) }
  /// What the program could not do.
  package static func error(_ message: @autoclosure () -> String) { write(.error, message) }

  private static func write(_ level: Level, _ message: () -> String) {
    if let observer = observer.withLock({ $0 }) { observer(level, message()) }
    let style = style.withLock { $0 }
    guard level >= style.level else { return }
    let moment = style.showsTime ? Timestamp.now.text + " " : ""
    let line = "\(moment)bucketfs: \(level.label): \(message())\n"
    var bytes = Array(line.utf8)
    let written = bytes.withUnsafeMutableBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    // A log that cannot be written has nowhere to report it.
    _ = written
  }
}
