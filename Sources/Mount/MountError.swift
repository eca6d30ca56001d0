package import Platform

/// Why a folder could not be mounted or unmounted, in words for people.
package enum MountError: Error, Equatable, CustomStringConvertible {
  /// The mount point does not exist.
  case missing(String)
  /// The mount point is not a folder.
  case notDirectory(String)
  /// The mount point holds files, which the mount would hide.
  case notEmpty(String)
  /// Something is mounted there already; its source or type is named.
  case alreadyMounted(String, by: String)
  /// Nothing is mounted there.
  case notMounted(String)
  /// Some process still uses the mount; the first few are named.
  case busy(String, users: [String])
  /// The mount point cannot be looked at or entered.
  case unreachable(String, Errno)
  /// The kernel's FUSE device is missing or closed to us.
  case device(Errno)
  /// The program that mounts for ordinary users is not installed.
  case helperMissing
  /// `allow_other` is not allowed to this user.
  case allowOtherRefused
  /// The kernel or the mount helper refused, in its own words.
  case refused(String, String)
  /// libfuse did not accept the options.
  case options(String)
  /// The system lacks something that serving needs, such as threads.
  case system(String, Errno)

  package var description: String {
    switch self {
    case .missing(let path): "\(path) does not exist"
    case .notDirectory(let path): "\(path) is not a directory"
    case .notEmpty(let path): "\(path) is not empty"
    case .alreadyMounted(let path, let source): "\(path) is already a mount point (\(source))"
    case .notMounted(let path): "\(path) is not a mount point"
    case .busy(let path, let users):
      users.isEmpty
        ? "\(path) is in use" : "\(path) is in use by \(users.joined(separator: ", "))"
    case .unreachable(let path, let error): "\(path) cannot be used: \(error)"
    case .device(let error): "the FUSE device /dev/fuse cannot be used: \(error)"
    case .helperMissing: "fusermount3 is not installed"
    case .allowOtherRefused: "allow_other is not allowed to ordinary users"
    case .refused(let path, let words): "\(path) cannot be mounted: \(words)"
    case .options(let words): "the mount options were refused: \(words)"
    case .system(let what, let error): "\(what): \(error)"
    }
  }

  /// What the person can do about it; nil when there is nothing to advise.
  package var hint: String? {
    switch self {
    case .missing(let path): "make it first: mkdir -p \(path)"
    case .notDirectory: "choose a directory as mount point"
    case .notEmpty: "choose an empty directory, or hide what is there with -o nonempty"
    case .alreadyMounted(let path, _): "unmount it first: bucketfs unmount \(path)"
    case .notMounted: nil
    case .busy: "close these files and leave the directory, then try again"
    case .unreachable: "check the path's owner and mode"
    case .device(.noEntry):
      "load the module (modprobe fuse), or give the container the device (--device /dev/fuse)"
    case .device: "ask the administrator for access to /dev/fuse"
    case .helperMissing: "install it: apt install fuse3"
    case .allowOtherRefused: "add the line user_allow_other to /etc/fuse.conf"
    case .refused: "mounting needs fusermount3, or root with CAP_SYS_ADMIN"
    case .options, .system: nil
    }
  }
}
