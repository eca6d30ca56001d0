import Glibc
import Platform

/// Whether a person has switched a mount's network access off.
///
/// A file in the profile's data folder says so, so that it stays off whatever ends the mount: until
/// `bucketfs online` nothing is sent.
struct NetworkSwitch: Sendable {
  /// The profile's data folder.
  let folder: String

  private var path: String { folder + "/offline" }

  /// Whether it is off; a folder that cannot be looked into has no say.
  var isOff: Bool { access(path, F_OK) == 0 }

  /// Notes durably that it is off, or on again.
  ///
  /// - Throws: `Errno` of writing to the folder.
  func set(off: Bool) throws(Errno) {
    if off {
      let file = try Directory(folder).open("offline", O_WRONLY | O_CREAT | O_NOFOLLOW)
      try file.sync()
    } else if unlink(path) != 0, errno != ENOENT {
      throw .last
    }
    let root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard root >= 0 else {
      // Nothing was ever kept there.
      if !off, errno == ENOENT { return }
      throw .last
    }
    defer { close(root) }
    try check { fsync(root) }
  }
}
