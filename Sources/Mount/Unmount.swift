import Glibc
package import Platform

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
    var facts = stat()
    return stat(path, &facts) != 0 && Errno.last == .notConnected
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

/// Who keeps a mount busy, as far as /proc shows it.
enum MountUsers {
  /// The first few processes that have a file or their working directory below a path.
  static func names(of path: String, limit: Int = 5) -> [String] {
    var users: [String] = []
    for process in entries("/proc") where process.first?.isNumber == true {
      guard uses("/proc/" + process, path) else { continue }
      users.append("\(name(of: process)) (\(process))")
      if users.count == limit { break }
    }
    return users
  }

  private static func uses(_ process: String, _ path: String) -> Bool {
    let links = ["cwd", "root", "exe"] + entries(process + "/fd").map { "fd/" + $0 }
    return links.contains { link in
      var target = [CChar](repeating: 0, count: 4096)
      let count = readlink(process + "/" + link, &target, target.count)
      guard count > 0 else { return false }
      let bytes = ByteString(target.prefix(count).map(UInt8.init(bitPattern:)))
      return bytes == ByteString(path) || bytes.hasPrefix(ByteString(path + "/"))
    }
  }

  private static func name(of process: String) -> String {
    // A process that has ended meanwhile has no name any more.
    guard let file = try? File("/proc/\(process)/comm", O_RDONLY) else { return "process" }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { try? file.read($0, at: 0) } ?? 0
    return String(decoding: bytes.prefix(count), as: UTF8.self).trimmed
  }

  private static func entries(_ path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { ByteString(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name.description) }
    }
    return names
  }
}
