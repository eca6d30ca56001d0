package import Platform

/// Tells the kernel that what it keeps is no longer right.
///
/// The first two only queue, never block and never fail: a thread of the notifier's own hands them
/// on, since the kernel may make it wait for a request that is unanswered (the libfuse manual
/// forbids notifying from within a request).
package protocol KernelNotifier: AnyObject, Sendable {
  /// A name in a folder leads elsewhere, or nowhere, or somewhere at last.
  func invalidateEntry(parent: UInt64, name: ByteString)
  /// Attributes and pages of an inode are out of date.
  func invalidateInode(_ inode: UInt64)
  /// Attributes of an inode are out of date; the kernel knows it when this returns.
  ///
  /// Also within an open: of attributes alone the kernel forgets without waiting for anything
  /// (fuse_reverse_inval_inode with an offset below zero), so a program that asks for the size next
  /// gets the one of what it has opened.
  func forgetAttributes(of inode: UInt64)
}
