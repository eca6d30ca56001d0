import Glibc

/// Whether a folder of ours may be kept at a path: nobody else can swap it, or look into it.
package enum FolderTrust {
  /// Why a folder may not be used.
  package enum Failure: Error, Sendable, Equatable {
    /// The folder, or one above it, cannot be trusted.
    case unsafe(path: String, reason: String)
    /// A call of the system failed.
    case system(path: String, doing: String, Errno)
  }

  /// Makes the folder where it is missing, with mode 0700, and checks it and all folders above.
  ///
  /// Above, every folder must belong to us or to root, and must not be writable by others unless
  /// it is sticky, as /tmp is (a group that is the owner's own does not count); a symlink must be
  /// root's. The folder itself must be ours, and no symlink; one that others may read is closed to
  /// them when it is empty or holds the mark.
  /// - Parameter mark: the name of a file that says what the folder is for.
  /// - Throws: `Failure`.
  package static func prepare(_ path: String, mark: ByteString) throws(Failure) {
    guard path.hasPrefix("/") else {
      throw .unsafe(path: path, reason: "the path is not absolute")
    }
    let names = path.split(separator: "/")
    guard !names.isEmpty, !names.contains("..") else {
      throw .unsafe(path: path, reason: "the path names no folder of its own")
    }
    var made = ""
    for (index, name) in names.enumerated() {
      made += "/" + name
      let isLast = index == names.count - 1
      if let status = try status(made, following: false) {
        try check(status, made, isLast: isLast)
      } else {
        guard mkdir(made, 0o700) == 0 || Errno.last == .exists else {
          throw .system(path: made, doing: "make", .last)
        }
      }
    }
    try close(path, mark)
  }

  private static func check(_ status: stat, _ path: String, isLast: Bool) throws(Failure) {
    let owner = status.st_uid
    if status.st_mode & S_IFMT == S_IFLNK {
      if isLast || owner != 0 {
        throw .unsafe(path: path, reason: "it is a symbolic link")
      }
      if let target = try self.status(path, following: true) {
        try check(target, path, isLast: false)
      }
      return
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw .unsafe(path: path, reason: "it is not a folder")
    }
    if isLast {
      guard owner == geteuid() else {
        throw .unsafe(path: path, reason: "it belongs to user \(owner), not to you")
      }
      guard status.st_mode & 0o022 == 0 else {
        throw .unsafe(path: path, reason: "other users may write to it (chmod 700 it)")
      }
      return
    }
    guard owner == geteuid() || owner == 0 else {
      throw .unsafe(path: path, reason: "this folder above it belongs to user \(owner)")
    }
    // A group that is one user's own has that user's number, where there are such groups.
    let isOwnGroup = status.st_gid == owner && owner == geteuid()
    let writable: mode_t = isOwnGroup ? 0o002 : 0o022
    guard status.st_mode & writable == 0 || status.st_mode & S_ISVTX != 0 else {
      throw .unsafe(path: path, reason: "other users may write to this folder above it")
    }
  }

  /// Shuts others out of a folder that they may read, once it is clear what it is for.
  private static func close(_ path: String, _ mark: ByteString) throws(Failure) {
    do throws(Errno) {
      let folder = try Directory(path)
      var status = stat()
      try Platform.check { fstat(folder.descriptor, &status) }
      guard status.st_uid == geteuid(), status.st_mode & 0o077 != 0 else { return }
      let names = try folder.names()
      guard names.isEmpty || names.contains(mark) else {
        throw .exists
      }
      try Platform.check { fchmod(folder.descriptor, 0o700) }
    } catch {
      if error == .exists {
        throw .unsafe(
          path: path, reason: "it holds other files, and other users may read it (chmod 700 it)")
      }
      throw .system(path: path, doing: "check", error)
    }
  }

  private static func status(_ path: String, following: Bool) throws(Failure) -> stat? {
    var status = stat()
    let code = following ? stat(path, &status) : lstat(path, &status)
    if code == 0 { return status }
    let error = Errno.last
    if error == .noEntry { return nil }
    throw .system(path: path, doing: "look at", error)
  }
}
