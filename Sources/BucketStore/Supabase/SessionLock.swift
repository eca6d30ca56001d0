import Glibc
import Platform

/// The lock between processes that guards a session file: flock(2) on `<file>.lock`.
///
/// The session file itself cannot be locked, since it is replaced by a rename.
struct SessionLock: ~Copyable {
  private let file: File

  /// Waits for the lock.
  ///
  /// - Throws: `Errno`; ETIMEDOUT or EINTR when the call's time passed or its caller gave up.
  init(_ session: String, _ call: Call) throws(Errno) {
    let opened = try File(session + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
    try Self.wait(opened.descriptor, call)
    file = opened
  }

  func release() {
    // Cannot fail on an open descriptor; closing it releases the lock all the same.
    _ = flock(file.descriptor, LOCK_UN)
  }

  private static func wait(_ descriptor: CInt, _ call: Call) throws(Errno) {
    let deadline = call.deadline
    while try !take(descriptor) {
      if Instant.now >= deadline { throw .timedOut }
      if call.cancellation.sleep(until: Instant.now + .milliseconds(20)) { throw .interrupted }
    }
  }

  /// - Returns: false when another open of the file holds the lock.
  private static func take(_ descriptor: CInt) throws(Errno) -> Bool {
    do throws(Errno) {
      try check { flock(descriptor, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error == .again { return false }
      throw error
    }
  }
}
