package import BucketStore
package import FileCache
import Platform

/// The tree as people see it: names, inodes and open files, made of the store and what is kept.
///
/// Every call is safe from any thread. On the fast lane nothing waits; what would is refused with
/// `Failure.mustWait` and done again on the slow lane. Locks: the tree's own, held for a few table
/// look-ups at a time, never while the store, the cache or the kernel is called.
package final class FileSystem: Sendable {
  let store: any BucketStore
  let listings: Listings
  let options: FileSystemOptions
  let tree: Locked<NodeTable>
  private let notifier = Locked<(any KernelNotifier)?>(nil)

  package init(listings: Listings, store: any BucketStore, options: FileSystemOptions) {
    self.listings = listings
    self.store = store
    self.options = options
    tree = Locked(NodeTable(root: .folder(options.root)))
  }

  /// Names the one who tells the kernel of changes; before the first request is served.
  package func connect(_ notifier: any KernelNotifier) {
    self.notifier.withLock { $0 = notifier }
  }

  /// The kernel forgot answers that named an inode (FUSE_FORGET). Never waits.
  package func forget(_ inode: UInt64, count: UInt64) {
    tree.withLock { $0.forget(inode, count: count) }
  }

  /// How many inodes the kernel or an open handle refers to.
  package var nodeCount: Int { tree.withLock { $0.count } }

  func node(_ inode: UInt64) throws(Failure) -> Node {
    guard let node = tree.withLock({ $0[inode] }) else {
      throw Failure(.noEntry, "inode \(inode) is not known")
    }
    return node
  }

  /// The folder that an inode stands for.
  ///
  /// - Throws: `Failure`; ENOTDIR for a file.
  func folder(_ inode: UInt64) throws(Failure) -> FolderName {
    guard case .folder(let folder) = try node(inode).place else {
      throw Failure(.notDirectory, "inode \(inode) is a file")
    }
    return folder
  }
}
