package import Platform
import SQLite

/// Why a cache cannot be used, in a sentence for people.
package enum CacheError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Another program uses it.
  case inUse(directory: String, pid: Int32?, mountPoint: String?)
  /// It was written by a newer program.
  case newerSchema(directory: String, found: Int64, known: Int64)
  /// The folder, or one above it, cannot be trusted.
  case unsafe(path: String, reason: String)
  /// A call of the system failed.
  case system(path: String, doing: String, Errno)
  /// There is no room for the index, or it lies where nothing can be written.
  case noPlace(path: String, message: String)
  /// The index can neither be used nor be made anew.
  case index(path: String, message: String)

  package var description: String {
    switch self {
    case .inUse(let directory, let pid?, let mountPoint?):
      "the cache \(directory) is in use by process \(pid), mounted at \(mountPoint)"
    case .inUse(let directory, _, _):
      "the cache \(directory) is in use by another program"
    case .newerSchema(let directory, let found, let known):
      "the cache \(directory) was written by a newer bucketfs (schema \(found), this one knows"
        + " \(known)): use that version, or remove the folder"
    case .unsafe(let path, let reason):
      "the cache cannot be kept at \(path): \(reason)"
    case .system(let path, let doing, let error):
      "cannot \(doing) \(path): \(error)"
    case .noPlace(let path, let message):
      "the cache's index \(path) cannot be written: \(message)"
    case .index(let path, let message):
      "the cache's index \(path) cannot be used: \(message)"
    }
  }
}
