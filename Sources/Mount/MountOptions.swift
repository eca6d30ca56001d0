package import Platform

/// How a file system is mounted and served.
package struct MountOptions: Sendable {
  /// The folder to mount on: an absolute path, or `/dev/fd/N` as mount.fuse(8) hands it over.
  package var mountPoint: String
  /// What is mounted, as mount(8) and df(1) show it.
  package var source: String
  /// Whether the kernel itself refuses every change.
  package var readOnly = true
  /// Whether other users may enter the mount (fuse(8), `allow_other`).
  package var allowOther = false
  /// Whether a mount point that holds files is accepted; they are hidden while mounted.
  package var allowNonEmpty = false
  /// Flags of mount(8) that are handed on to the kernel, such as `noexec`.
  package var kernelFlags: [String] = []
  /// How long the store may be silent before a waiting call gives up.
  package var timeout = Span.seconds(10)
  /// Threads that answer what needs no waiting: 1 to 8.
  package var fastWorkers = 4
  /// The most threads that serve calls which something kept can answer, where that takes a while.
  package var briefWorkers = 32
  /// The most threads that wait for the store at one time; further calls stand in line.
  package var slowWorkers = 64

  package init(mountPoint: String, source: String) {
    self.mountPoint = mountPoint
    self.source = source
  }

  /// Takes one of mount(8)'s own words, which every file system is given and none has to know.
  ///
  /// Flags that the kernel keeps are kept, `ro` and `allow_other` are set, and the rest
  /// (`_netdev`, `nofail`, `user`, `x-systemd.automount` ...) is meant for mount(8) and dropped.
  /// - Returns: false when it is none of those words.
  package mutating func take(word: String) -> Bool {
    switch word {
    case "ro": readOnly = true
    case "allow_other": allowOther = true
    case "nonempty": allowNonEmpty = true
    case "dev", "nodev", "suid", "nosuid", "exec", "noexec", "sync", "async", "dirsync":
      kernelFlags.append(word)
    case "rw", "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group",
      "nofail", "_netdev", "default_permissions", "silent", "loud", "comment":
      break
    // No time of access is kept, so these change nothing; libfuse refuses most of them.
    case "atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime",
      "nostrictatime":
      break
    default:
      return word.hasPrefix("x-") || word.hasPrefix("X-") || word.hasPrefix("comment=")
    }
    return true
  }

  /// The largest read that the kernel asks for, in bytes.
  ///
  /// Requests of 1 MiB are read 1.2 times faster than those of 128 KiB, the kernel's default.
  static let maxRead: UInt32 = 1 << 20

  /// The largest write that the kernel hands over, in bytes: the most that libfuse has room for.
  static let maxWrite: UInt32 = 1 << 20

  /// The value of `-o` for libfuse; later words win over earlier ones.
  var libraryOptions: String {
    var words = [
      "fsname=" + Self.escaped(source), "subtype=bucketfs", "default_permissions",
      "max_read=\(Self.maxRead)", "nosuid", "nodev",
    ]
    words += kernelFlags
    if readOnly { words.append("ro") }
    if allowOther { words.append("allow_other") }
    return words.joined(separator: ",")
  }

  /// A value in which `,` and `\` are themselves (fuse_opt_add_opt_escaped in fuse_opt.h).
  private static func escaped(_ value: String) -> String {
    String(value.flatMap { $0 == "," || $0 == "\\" ? ["\\", $0] : [$0] })
  }
}
