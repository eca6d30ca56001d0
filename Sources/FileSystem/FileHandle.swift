import BucketStore
import FileCache
import PendingQueue
import Platform

/// An open file: one version of an object, whatever the store makes of the object meanwhile; what
/// is written to it on this device shows in every handle of the inode.
package final class FileHandle: Sendable {
  /// The file that it was opened by.
  package let inode: UInt64
  /// Whether the kernel's pages of the inode are of this version (FOPEN_KEEP_CACHE).
  package let keepsCache: Bool
  /// As it was called when it was opened, for messages.
  let object: ObjectName
  /// The store's version; nil for a file that was pending.
  let file: OpenFile?
  /// What all handles of the inode share; nil where nothing can be written.
  let body: FileBody?
  /// Whether it was opened for writing.
  package let isWriter: Bool
  private let onClose: @Sendable () -> Void
  private let isClosed = Locked(false)

  /// - Parameter isCounted: whether `body` knows of the writer already.
  init(
    inode: UInt64, object: ObjectName, file: OpenFile?, body: FileBody?, isWriter: Bool = false,
    isCounted: Bool = false, keepsCache: Bool, onClose: @escaping @Sendable () -> Void
  ) {
    self.inode = inode
    self.object = object
    self.file = file
    self.body = body
    self.isWriter = isWriter
    self.keepsCache = keepsCache
    self.onClose = onClose
    if isWriter, !isCounted { body?.addWriter(file) }
  }

  deinit { close() }

  /// Lets go of the version (FUSE_RELEASE); calling it again does nothing.
  package func close() {
    let isFirst = isClosed.withLock { closed in
      defer { closed = true }
      return !closed
    }
    guard isFirst else { return }
    file?.close()
    if isWriter { body?.removeWriter() }
    onClose()
  }
}
