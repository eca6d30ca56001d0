import Glibc
import Platform

/// Takes a mount away, from outside the program that serves it.
package enum Unmount {
  /// Unmounts a folder.
  ///
  /// - Parameters:
  ///   - path: the mount point.
  ///   - lazily: detaches it at once, though files in it are still open; they stay served until
  ///     they are closed.
  /// - Throws: `MountError`; `busy` names who uses it, `notMounted` when there is no mount.
  package static func run(_ path: String, lazily: Bool = false) throws(MountError) {
    let place = try MountPoint.canonical(path)
    guard try MountPoint.entry(at: place) != nil else { throw .notMounted(place) }
    try detach(place, lazily: lazily)
  }

  static func detach(_ path: String, lazily: Bool) throws(MountError) {
    guard geteuid() == 0 else { return try FuserMount.unmount(path, lazily: lazily) }
    do throws(Errno) {
      // 2 is MNT_DETACH, 8 is UMOUNT_NOFOLLOW (umount2(2)).
      try check { umount2(path, (lazily ? 2 : 0) | 8) }
    } catch {
      switch error {
      case .busy: throw .busy(path, users: MountUsers.names(of: path))
      case .invalid: throw .notMounted(path)
      default: throw .unreachable(path, error)
      }
    }
  }
}

/// A mount whose program was killed: every call on it answers "Transport endpoint is not connected".
package enum DeadMount {
  /// Whether a path is the mount point of a dead mount of this program.
  ///
  /// Asks the mount itself, which answers at once when it is dead; one that is alive is asked too.
  package static func isDead(_ path: String) throws(MountError) -> Bool {
    guard let entry = try MountPoint.entry(at: path), entry.isOurs else { return false }
    // Not stat(2): for as long as attributes are believed, the kernel answers it alone.
    var facts = statvfs()
    guard statvfs(path, &facts) != 0 else { return false }
    // A program that dies under the question leaves it aborted, and every later one unconnected.
    return [.notConnected, .connectionAborted].contains(Errno.last)
  }

  /// Detaches a dead mount of this program; leaves everything else as it is.
  package static func clear(_ path: String) throws(MountError) {
    let place = try MountPoint.canonical(path)
    // A program killed twice may have left two, one on the other.
    for _ in 0..<16 {
      guard try isDead(place) else { return }
      Log.info("\(place): the mount of a program that was killed is cleared away")
      try Unmount.detach(place, lazily: true)
    }
  }
}
