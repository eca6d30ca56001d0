import CFuse
import Glibc
import Platform

/// What libfuse has to say goes to the program's log.
///
/// Its errors while a mount is made become part of the sentence that the person reads instead.
enum FuseLog {
  private struct State {
    var isStarting = false
    var last: String?
  }

  private static let state = Locked(State())

  /// Whether a mount is being made, whose errors are kept for `lastWords`.
  static var isStarting: Bool {
    get { state.withLock { $0.isStarting } }
    set { state.withLock { $0 = State(isStarting: newValue) } }
  }

  /// The last error of the mount being made.
  static var lastWords: String? { state.withLock { $0.last } }

  static func install() {
    fuse_set_log_func { level, format, arguments in
      guard let format, let arguments else { return }
      var buffer = [CChar](repeating: 0, count: 512)
      vsnprintf(&buffer, buffer.count, format, arguments)
      let bytes = buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
      FuseLog.write(level, String(decoding: bytes, as: UTF8.self).trimmed)
    }
  }

  private static func write(_ level: fuse_log_level, _ words: String) {
    switch level {
    case FUSE_LOG_EMERG, FUSE_LOG_ALERT, FUSE_LOG_CRIT, FUSE_LOG_ERR:
      let isKept = state.withLock { state in
        if state.isStarting { state.last = words }
        return state.isStarting
      }
      if isKept { Log.info(words) } else { Log.error(words) }
    case FUSE_LOG_WARNING: Log.warning(words)
    case FUSE_LOG_NOTICE, FUSE_LOG_INFO: Log.info(words)
    default: Log.debug(words)
    }
  }
}
