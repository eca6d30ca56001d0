import BucketStore
import FileCache
import Platform

/// An open file: one version of an object, whatever happens to the object meanwhile.
package final class FileHandle: Sendable {
  package let inode: UInt64
  /// Whether the kernel's pages of the inode are of this version (FOPEN_KEEP_CACHE).
  package let keepsCache: Bool
  let file: OpenFile
  private let onClose: @Sendable () -> Void
  private let isClosed = Locked(false)

  init(
    inode: UInt64, file: OpenFile, keepsCache: Bool,
    onClose: @escaping @Sendable () -> Void
  ) {
    self.inode = inode
    self.file = file
    self.keepsCache = keepsCache
    self.onClose = onClose
  }

  deinit { close() }

  /// Lets go of the version (FUSE_RELEASE); calling it again does nothing.
  package func close() {
    let isFirst = isClosed.withLock { closed in
      defer { closed = true }
      return !closed
    }
    guard isFirst else { return }
    file.close()
    onClose()
  }
}
