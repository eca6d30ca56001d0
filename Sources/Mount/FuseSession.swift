import CFuse
import Glibc
import Platform

/// A session of libfuse: what is mounted, and the channel to the kernel.
///
/// `@unchecked Sendable`: the pointer never changes, the calls that workers make (receive, process,
/// exit, notify) are safe from any thread by libfuse's contract, and `mount`, `unmount` and the
/// deinit happen while no worker runs.
final class FuseSession: @unchecked Sendable {
  private let pointer: OpaquePointer
  private let server: Unmanaged<Server>
  private let isAbandoned = Locked(false)

  init(_ server: Server, _ options: MountOptions) throws(MountError) {
    FuseLog.install()
    FuseLog.isStarting = true
    var arguments = fuse_args()
    defer { fuse_opt_free_args(&arguments) }
    for word in ["bucketfs", "-o", options.libraryOptions] {
      guard fuse_opt_add_arg(&arguments, word) == 0 else {
        throw .system("the mount options", Errno(ENOMEM))
      }
    }
    var operations = Operations.table
    let context = Unmanaged.passRetained(server)
    guard let pointer = bucketfs_session_new(&arguments, &operations, context.toOpaque()) else {
      context.release()
      throw .options(FuseLog.lastWords ?? options.libraryOptions)
    }
    self.pointer = pointer
    self.server = context
  }

  /// Leaves the channel open for good: some thread may still answer through it.
  func abandon() { isAbandoned.withLock { $0 = true } }

  deinit {
    if isAbandoned.withLock({ $0 }) { return }
    fuse_session_destroy(pointer)
    server.release()
  }

  /// Whether the session shall end, or has been ended by an unmount from outside.
  var hasExited: Bool { fuse_session_exited(pointer) != 0 }

  func exit() { fuse_session_exit(pointer) }

  func mount(_ path: String) throws(MountError) {
    guard fuse_session_mount(pointer, path) == 0 else {
      throw .refused(path, FuseLog.lastWords ?? "the kernel said no")
    }
    // Without it the kernel asks once more at each write, and nothing else is different.
    let code = bucketfs_session_watch(pointer)
    if code != 0 { Log.debug("each write costs two requests: \(Errno(-code))") }
    FuseLog.isStarting = false
  }

  /// Takes the mount away, lazily, and closes the channel; no worker may be running.
  func unmount() { fuse_session_unmount(pointer) }

  /// Receives and processes requests until the session has exited.
  ///
  /// - Parameter after: called after each request.
  func work(_ after: () -> Void) {
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    while !hasExited {
      let count = fuse_session_receive_buf(pointer, &buffer)
      if count == -EINTR { continue }
      guard count > 0 else {
        if count < 0 { Log.error("the kernel's channel failed: \(Errno(-count))") }
        break
      }
      fuse_session_process_buf(pointer, &buffer)
      after()
    }
    // One worker that leaves takes the others along: fewer of them would serve unnoticed.
    exit()
  }

  /// Drops a name from the kernel's memory.
  ///
  /// - Returns: false when the kernel is gone; a name that it does not know is no failure.
  func invalidateEntry(parent: UInt64, name: ByteString) -> Bool {
    let code = name.withCString {
      fuse_lowlevel_notify_inval_entry(pointer, parent, $0, name.count)
    }
    return code == 0 || code == -ENOENT
  }

  /// Makes the kernel forget an inode's attributes, at once and without waiting.
  func forgetAttributes(of inode: UInt64) {
    // A kernel that does not know the inode, or has unmounted, has nothing to forget.
    _ = fuse_lowlevel_notify_inval_inode(pointer, inode, -1, 0)
  }

  /// Drops an inode's attributes and pages from the kernel's memory.
  ///
  /// - Returns: false when the kernel is gone; an inode that it does not know is no failure.
  func invalidateInode(_ inode: UInt64) -> Bool {
    let code = fuse_lowlevel_notify_inval_inode(pointer, inode, 0, 0)
    return code == 0 || code == -ENOENT
  }
}
