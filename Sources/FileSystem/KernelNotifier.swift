package import Platform

/// Tells the kernel that what it keeps is no longer right.
///
/// Both calls only queue, never block and never fail: a thread of the notifier's own hands them
/// on, since the kernel may make it wait for a request that is unanswered (the libfuse manual
/// forbids notifying from within a request).
package protocol KernelNotifier: AnyObject, Sendable {
  /// A name in a folder leads elsewhere, or nowhere, or somewhere at last.
  func invalidateEntry(parent: UInt64, name: ByteString)
  /// Attributes and pages of an inode are out of date.
  func invalidateInode(_ inode: UInt64)
}
