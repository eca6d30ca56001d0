import Glibc
import Platform

/// The folder to mount on, looked at without entering what may be mounted there already.
package enum MountPoint {
  /// The path that the kernel knows it by: absolute, and without symlinks.
  ///
  /// The last part is resolved only when that does not enter a mount, for a dead or a stalled one
  /// would answer with an error or not at all.
  package static func canonical(_ path: String) throws(MountError) -> String {
    // mount.fuse(8) has opened it already, with rights that we may lack.
    if path.hasPrefix("/dev/fd/") { return path }
    let (parent, name) = try parts(of: path)
    guard let folder = resolve(parent) else { throw error(parent, Errno.last) }
    let direct = name.isEmpty ? folder : (folder == "/" ? "/" + name : folder + "/" + name)
    if try entry(at: direct) != nil { return direct }
    guard let target = resolve(direct) else { throw error(path, Errno.last) }
    return target
  }

  /// What is mounted there; nil for an ordinary folder.
  static func entry(at path: String) throws(MountError) -> MountEntry? {
    do throws(Errno) {
      return try MountTable.entry(at: ByteString(path))
    } catch {
      throw .system("the list of mounts cannot be read", error)
    }
  }

  /// Makes sure that a folder can be mounted on, and clears a dead mount of ours away.
  ///
  /// - Returns: the canonical path.
  static func prepare(_ options: MountOptions) throws(MountError) -> String {
    if options.mountPoint.hasPrefix("/dev/fd/") { return options.mountPoint }
    try DeadMount.clear(options.mountPoint)
    let path = try canonical(options.mountPoint)
    if let present = try entry(at: path), present.type != "autofs" {
      throw .alreadyMounted(path, by: present.source)
    }
    try checkFolder(path, mayHoldFiles: options.allowNonEmpty)
    try checkDevice()
    if options.allowOther, geteuid() != 0, !mayAllowOther { throw .allowOtherRefused }
    return path
  }

  private static func checkFolder(_ path: String, mayHoldFiles: Bool) throws(MountError) {
    var facts = stat()
    do throws(Errno) { try check { stat(path, &facts) } } catch { throw self.error(path, error) }
    guard facts.st_mode & S_IFMT == S_IFDIR else { throw .notDirectory(path) }
    guard !mayHoldFiles else { return }
    let isEmpty: Bool
    do throws(Errno) {
      isEmpty = try File(path, O_RDONLY | O_DIRECTORY).entries().isEmpty
    } catch {
      throw self.error(path, error)
    }
    guard isEmpty else { throw .notEmpty(path) }
  }

  private static func checkDevice() throws(MountError) {
    if geteuid() != 0, FuserMount.path == nil { throw .helperMissing }
    do throws(Errno) {
      _ = try File("/dev/fuse", O_RDWR)
    } catch {
      throw .device(error)
    }
  }

  private static var mayAllowOther: Bool {
    // Without the file nothing is allowed, which is its default too (fuse.conf).
    guard let text = try? File.contents(of: "/etc/fuse.conf") else { return false }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").contains {
      String($0).trimmed == "user_allow_other"
    }
  }

  private static func parts(of path: String) throws(MountError) -> (String, String) {
    var absolute = path
    if !path.hasPrefix("/") {
      guard let here = getcwd(nil, 0) else { throw .unreachable(path, Errno.last) }
      defer { free(here) }
      absolute = ByteString(cString: here).description + "/" + path
    }
    var segments = absolute.split(separator: "/").map(String.init)
    // A path that ends in `.` or `..` names a folder by way of itself: all of it is resolved.
    guard let last = segments.last, last != ".", last != ".." else {
      return (absolute.isEmpty ? "/" : absolute, "")
    }
    segments.removeLast()
    return ("/" + segments.joined(separator: "/"), last)
  }

  private static func resolve(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(decoding: ByteString(cString: resolved).bytes, as: UTF8.self)
  }

  private static func error(_ path: String, _ error: Errno) -> MountError {
    switch error {
    case .noEntry: .missing(path)
    case .notDirectory: .notDirectory(path)
    default: .unreachable(path, error)
    }
  }
}
