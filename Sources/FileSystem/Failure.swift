package import BucketStore
package import Platform

/// Why an operation failed: a number for the kernel and a sentence for the log.
package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
  /// What the caller of the system call is told.
  package let errno: Errno
  /// What happened, to which file, and the store's own words; holds no credential.
  package let message: String
  /// How loud the log should say it. A missing name is no event; damaged bytes are.
  package let level: Log.Level

  package init(_ errno: Errno, _ message: String, level: Log.Level = .debug) {
    self.errno = errno
    self.message = message
    self.level = level
  }

  /// The answer takes a while on this device, or may: run the same call again on the brief lane.
  ///
  /// Thrown on the fast lane only, and never sent to the kernel.
  package static let takesTime = Failure(.again, "the answer takes a while")

  /// Only the store knows the answer: run the same call again on the slow lane.
  ///
  /// Never thrown on the slow lane, and never sent to the kernel.
  package static let mustWait = Failure(.again, "the answer has to be waited for")

  /// Where the call is to run again; nil for a failure that is the answer.
  package var lane: Lane? {
    switch self {
    case .takesTime: .brief
    case .mustWait: .slow
    default: nil
    }
  }

  package var description: String { message }
}

extension Failure {
  /// The store's failure as a file operation shows it, after nothing kept could answer.
  ///
  /// - Parameter subject: what was asked for, such as `photos/2024/a.jpg`.
  package init(_ error: StoreError, _ subject: String) {
    let level: Log.Level =
      switch error.kind {
      case .notFound, .cancelled, .offline, .disabled: .debug
      case .connectivity, .timeout, .throttled: .info
      case .refused, .sessionExpired, .conflict, .exists, .tooLarge, .typeRefused, .keyRefused,
        .unsupported, .server, .noRoom:
        .warning
      case .damaged: .error
      }
    self.init(error.kind.errno, "\(subject): \(error.message)", level: level)
  }
}
