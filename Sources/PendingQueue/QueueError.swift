package import Platform

/// Why a queue cannot be used, in a sentence for people.
package enum QueueError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Another program uses it.
  case inUse(directory: String, pid: Int32?)
  /// The folder, or one above it, cannot be trusted.
  case unsafe(path: String, reason: String)
  /// A call of the system failed.
  case system(path: String, doing: String, Errno)

  package var description: String {
    switch self {
    case .inUse(let directory, let pid?):
      "the pending uploads in \(directory) are in use by process \(pid)"
    case .inUse(let directory, nil):
      "the pending uploads in \(directory) are in use by another program"
    case .unsafe(let path, let reason):
      "pending uploads cannot be kept at \(path): \(reason)"
    case .system(let path, let doing, let error):
      "cannot \(doing) \(path): \(error)"
    }
  }
}
