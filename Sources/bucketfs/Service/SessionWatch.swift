import Glibc
import Platform

/// Notices that the file of a session was replaced while nobody was signed in.
final class SessionWatch: Sendable {
  private struct State {
    /// The file as it was when nobody was signed in any more.
    var before: Stamp?
    var changedAt: Instant?
  }

  private struct Stamp: Equatable {
    let inode: UInt
    let seconds: Int
    let nanoseconds: Int
  }

  /// How long a new session has to show that it is good.
  private static let trial = Span.seconds(15)

  private let file: String
  private let state = Locked(State())

  init(_ file: String) {
    self.file = file
  }

  /// Whether the file was replaced a moment ago. One look at the file.
  func hasChanged() -> Bool {
    let now = stamp()
    return state.withLock { state in
      guard let before = state.before else {
        state.before = now
        return false
      }
      if before != now {
        state.before = now
        state.changedAt = .now
      }
      return state.changedAt.map { Instant.now.since($0) < Self.trial } ?? false
    }
  }

  /// Somebody is signed in.
  func forget() {
    state.withLock { $0 = State() }
  }

  private func stamp() -> Stamp {
    var facts = stat()
    guard stat(file, &facts) == 0 else { return Stamp(inode: 0, seconds: 0, nanoseconds: 0) }
    return Stamp(
      inode: UInt(facts.st_ino), seconds: facts.st_mtim.tv_sec,
      nanoseconds: facts.st_mtim.tv_nsec)
  }
}
