import CLinux
import Glibc
import Platform

/// Where a mount can be talked to: a unix socket in a folder of its user alone.
struct ControlSocket: ~Copyable, Sendable {
  /// Opened once and checked, so that nobody can put another folder in its place afterwards.
  private let folder: File
  private let name: String

  /// The socket's file name: the mount point's digest, since a path may be long or hold anything.
  static func name(of mountpoint: ByteString) -> String {
    Digest.hex(.sha256, of: mountpoint.bytes).prefix(32) + ".sock"
  }

  /// The folder for a mount that this process serves, made where it is missing.
  init(servingAt mountpoint: ByteString) throws(Complaint) {
    name = Self.name(of: mountpoint)
    let user = geteuid()
    for parent in Self.runtimeFolders(of: user) where Self.belongs(parent, to: user) {
      if let folder = Self.makeFolder(parent + "/bucketfs", of: user) {
        self.folder = folder
        return
      }
    }
    guard let folder = Self.makeFolder(Self.temporaryFolder(of: user), of: user) else {
      throw Complaint(
        .refused,
        "no folder for the control socket: \(Self.temporaryFolder(of: user)) is not ours alone",
        hint: "remove it, or set XDG_RUNTIME_DIR to a folder of your own")
    }
    self.folder = folder
  }

  private init(folder: consuming File, name: String) {
    self.folder = folder
    self.name = name
  }

  /// Connects to the process that serves a mount.
  ///
  /// Each place where the socket may be is tried, since that process may have had another
  /// environment, and one that was killed may have left a socket behind.
  /// - Throws: `Errno`; ENOENT when there is no socket, ECONNREFUSED when its process is gone, EAGAIN
  ///   when it takes no more, EACCES when it is another user's.
  static func connect(to mountpoint: ByteString, servedBy user: UInt32) throws(Errno) -> File {
    var problem = Errno.noEntry
    for place in places(of: user) {
      do throws(Errno) {
        let folder = try File(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        // A folder that somebody else could have made holds no socket to be trusted.
        guard isSafe(folder, owner: user, closedBits: 0o022) else { continue }
        return try ControlSocket(folder: folder, name: name(of: mountpoint)).connect()
      } catch {
        if error != .noEntry { problem = error }
      }
    }
    throw problem
  }

  /// The folders in which a user's sockets may be, the likeliest first.
  static func places(of user: UInt32) -> [String] {
    runtimeFolders(of: user).map { $0 + "/bucketfs" } + [temporaryFolder(of: user)]
  }

  /// Lets a socket listen under the mount's name, in place of a stale one.
  ///
  /// - Returns: the name's inode number, for `remove`.
  func listen(_ socket: borrowing File) throws(Errno) -> UInt {
    let descriptor = socket.descriptor
    let draft = "\(name).\(getpid())"
    unlinkat(folder.descriptor, draft, 0)
    try with(address: draft) { (address, length) throws(Errno) in
      try check { bind(descriptor, address, length) }
    }
    do throws(Errno) {
      try check { fchmodat(folder.descriptor, draft, 0o600, 0) }
      try check { Glibc.listen(descriptor, 16) }
      var status = stat()
      try check { fstatat(folder.descriptor, draft, &status, AT_SYMLINK_NOFOLLOW) }
      try check { renameat(folder.descriptor, draft, folder.descriptor, name) }
      return UInt(status.st_ino)
    } catch {
      unlinkat(folder.descriptor, draft, 0)
      throw error
    }
  }

  /// Removes the socket's name if it still is the one that `listen` made.
  func remove(inode: UInt) {
    var status = stat()
    guard fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
      UInt(status.st_ino) == inode
    else { return }
    unlinkat(folder.descriptor, name, 0)
  }

  private func connect() throws(Errno) -> File {
    let socket = try Self.stream()
    try with(address: name) { (address, length) throws(Errno) in
      try check { Glibc.connect(socket.descriptor, address, length) }
    }
    return socket
  }

  /// The user at the other end of a connection (unix(7), SO_PEERCRED).
  static func peer(of descriptor: CInt) throws(Errno) -> UInt32 {
    var credentials = bucketfs_ucred()
    var length = socklen_t(MemoryLayout<bucketfs_ucred>.size)
    try check {
      getsockopt(descriptor, SOL_SOCKET, CInt(BUCKETFS_SO_PEERCRED), &credentials, &length)
    }
    return credentials.uid
  }

  /// A socket that never blocks.
  static func stream() throws(Errno) -> File {
    let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    return File(owning: try check { socket(AF_UNIX, type, 0) })
  }

  /// Calls with the address of a name in the folder.
  ///
  /// The way goes through the open folder in /proc, so that it is short whatever the folder's path:
  /// an address holds 107 bytes.
  private func with(
    address name: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> Void
  ) throws(Errno) {
    let path = Array("/proc/self/fd/\(folder.descriptor)/\(name)".utf8)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { throw .nameTooLong }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    try withUnsafePointer(to: &address) { (pointer) throws(Errno) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (generic) throws(Errno) in
        try body(generic, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  /// Folders that the system gives a user for the time of a session.
  private static func runtimeFolders(of user: UInt32) -> [String] {
    var folders = ["/run/user/\(user)"] + (user == 0 ? ["/run"] : [])
    if user == geteuid(), let own = Places.environment("XDG_RUNTIME_DIR"), own.hasPrefix("/") {
      folders.insert(own, at: 0)
    }
    return folders
  }

  private static func temporaryFolder(of user: UInt32) -> String { "/tmp/bucketfs-\(user)" }

  private static func belongs(_ path: String, to user: UInt32) -> Bool {
    do throws(Errno) {
      return isSafe(try File(path, O_RDONLY | O_DIRECTORY), owner: user, closedBits: 0o022)
    } catch {
      // A folder that cannot be opened is no place for the socket; the next one is tried.
      return false
    }
  }

  private static func makeFolder(_ path: String, of user: UInt32) -> File? {
    mkdir(path, 0o700)
    do throws(Errno) {
      let folder = try File(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      guard isSafe(folder, owner: user, closedBits: 0o077) else { return nil }
      return folder
    } catch {
      // Not there and not to be made: the caller tries the next place.
      return nil
    }
  }

  private static func isSafe(_ folder: borrowing File, owner: UInt32, closedBits: UInt32) -> Bool {
    do throws(Errno) {
      let status = try folder.status()
      return status.st_uid == owner && status.st_mode & closedBits == 0
    } catch {
      return false
    }
  }
}
