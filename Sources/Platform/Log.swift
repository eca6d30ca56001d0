import Glibc

/// The program's log: one line an event, on standard error.
///
/// Guarded by one write(2) a line, which the kernel keeps whole up to PIPE_BUF bytes.
package enum Log {
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

  private static let threshold = Locked(Level.warning)

  /// The least level that is written; `warning` at start.
  package static var level: Level {
    get { threshold.withLock { $0 } }
    set { threshold.withLock { $0 = newValue } }
  }

  /// Is shown every message on the thread that logs it, whatever the level; tests listen here.
  package static let observer = Locked<(@Sendable (Level, String) -> Void)?>(nil)

  package static func debug(_ message: @autoclosure () -> String) { write(.debug, message) }
  package static func info(_ message: @autoclosure () -> String) { write(.info, message) }
  package static func warning(_ message: @autoclosure () -> String) { write(.warning, message) }
  package static func error(_ message: @autoclosure () -> String) { write(.error, message) }

  private static func write(_ level: Level, _ message: () -> String) {
    if let observer = observer.withLock({ $0 }) { observer(level, message()) }
    guard level >= self.level else { return }
    let line = "bucketfs: \(level.label): \(message())\n"
    var bytes = Array(line.utf8)
    let written = bytes.withUnsafeMutableBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    // A log that cannot be written has nowhere to report it.
    _ = written
  }
}
