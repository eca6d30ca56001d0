package import BucketStore
package import FileCache
package import PendingQueue
import Platform

/// The tree as people see it: names, inodes and open files, made of the store and what is kept.
///
/// Every call is safe from any thread. On the fast lane nothing waits; what would is refused with
/// `Failure.takesTime` or `Failure.mustWait`, and done again on a lane that may. Locks: the tree's
/// own, held for a few table look-ups at a time, never while the store, the cache or the kernel is
/// called.
package final class FileSystem: Sendable {
  /// The folders as the store has them, shared with the program's verbs.
  package let listings: Listings
  let cache: FileCache
  let store: any BucketStore
  /// What the store does not have yet; nil where nothing can be changed.
  package let queue: PendingQueue?
  let options: FileSystemOptions
  let tree: Locked<NodeTable>
  let parked = ParkedFiles()
  let opens = Locked(OpenBursts())
  let recent = Locked(RecentChanges())
  /// Stands for the time of what has none of its own.
  let madeAt = Timestamp.now
  let patience: Patience
  let missing = Locked(MissingNames())
  let readAhead: FileReadAhead
  /// What a person has set of files and folders, and the store does not keep.
  let keptAttributes: AttributeTable
  /// Names that this file system itself is changing: the queue's word of them is no news.
  let ours = Locked([ObjectName: Int]())
  private let notifier = Locked<(any KernelNotifier)?>(nil)

  /// Joins a store with what is kept of it; listings are kept beside the copies.
  ///
  /// - Parameter queue: takes what is written, and is to be started with this file system as its
  ///   receiver; nil for a file system that can only be read.
  package init(
    cache: FileCache, store: any BucketStore, queue: PendingQueue? = nil,
    options: FileSystemOptions
  ) {
    self.cache = cache
    self.store = store
    self.queue = queue
    self.options = options
    keptAttributes = AttributeTable(cache.database)
    patience = Patience(limit: options.patience, isReached: { store.isReached })
    readAhead = FileReadAhead(cache)
    var listingOptions = ListingOptions(
      maxAge: cache.options.maxAge, limit: cache.options.listingCacheSize, names: options.names,
      namedBuckets: options.namedBuckets,
      confirm: { cache.confirm($0, in: $1, at: $2) })
    listingOptions.root = options.root
    listings = Listings(store: store, database: cache.database, options: listingOptions)
    tree = Locked(NodeTable(root: .folder(options.root)))
    listings.observe { [weak self] old, new in self?.announce(old, new) }
    queue?.observe { [weak self] change in self?.announce(change) }
  }

  /// Whether nothing can be changed.
  var isReadOnly: Bool { !isWritable }

  /// Whether files can be written.
  package var isWritable: Bool { !options.readOnly && queue != nil }

  /// Names the one who tells the kernel of changes; before the first request is served.
  package func connect(_ notifier: any KernelNotifier) {
    self.notifier.withLock { $0 = notifier }
  }

  /// Ends downloads and lets another program have the cache; after the last request was served.
  package func close() {
    readAhead.close()
    cache.close()
    patience.close()
  }

  /// Believes nothing that is kept any longer, so that the store is asked: the network is back, or
  /// the person wants to see what is new.
  ///
  /// The kernel asks again too, about the files and folders that it knows (the first 20,000 of them)
  /// and the names that it was last told lead nowhere. Names stay where they lead, so that nobody's
  /// working directory is lost: whether one still leads there is asked with its attributes.
  package func distrust() {
    patience.renew()
    listings.distrust()
    guard let notifier = notifier.withLock({ $0 }) else { return }
    for inode in tree.withLock({ $0.known(Self.mostRenewed) }) {
      notifier.forgetAttributes(of: inode)
    }
    for name in missing.withLock({ $0.takeAll() }) {
      notifier.invalidateEntry(parent: name.parent, name: name.name)
    }
  }

  private static let mostRenewed = 20_000

  /// What the store does not do though it is reached, and why, for people; nil while it answers.
  package var trouble: String? {
    guard let (subject, error) = patience.reason else { return nil }
    let what = subject == .names ? "folders are" : "files are"
    let how = error.kind == .timeout ? "the store is silent" : "the store fails"
    return "\(how) when \(what) asked for: \(error.message)"
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

  /// Has the kernel ask for the attributes of an inode again, from this moment on.
  func forgetAttributes(of inode: UInt64) {
    notifier.withLock { $0 }?.forgetAttributes(of: inode)
  }

  /// Has the kernel look the name of a node up anew.
  func forgetName(of node: Node) {
    notifier.withLock { $0 }?.invalidateEntry(parent: node.parent, name: node.name)
  }

  /// Something pending has changed otherwise than through a call on this file system.
  private func announce(_ change: PendingChange) {
    guard change.kind != .state, let notifier = notifier.withLock({ $0 }),
      ours.withLock({ $0[change.object] == nil })
    else { return }
    let folder = FolderName(containing: change.object)
    let segment = change.object.key.dropFirst(folder.prefix.count)
    guard let name = listings.options.names.name(of: segment),
      let parent = tree.withLock({ $0.node(of: .folder(folder))?.inode })
    else { return }
    // One that is stored shows as it was.
    if change.kind == .gone,
      recent.withLock({ $0.change(name, in: folder, since: .epoch)?.entry != nil })
    {
      return
    }
    notifier.invalidateEntry(parent: parent, name: name)
  }

  /// Changes what is pending under a name, so that the kernel, which knows, is not told of it.
  func changing<Result>(
    _ object: ObjectName, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    ours.withLock { $0[object, default: 0] += 1 }
    defer {
      ours.withLock { ours in
        let count = (ours[object] ?? 1) - 1
        ours[object] = count > 0 ? count : nil
      }
    }
    return try body()
  }

  /// A listing gave way to a different one: the kernel must not go on believing the old.
  private func announce(_ old: Listing, _ new: Listing) {
    let folder = Place.folder(new.folder)
    guard let notifier = notifier.withLock({ $0 }),
      let parent = tree.withLock({ $0.node(of: folder)?.inode })
    else { return }
    let (changed, added) = old.changes(to: new)
    for name in added {
      // What was made here leads there already; a folder that a program works in would lose its
      // path (getcwd(3)).
      let known = new.entry(name).flatMap { place(of: $0, in: new.folder) }
      if let known, tree.withLock({ $0.node(of: known) }) != nil { continue }
      notifier.invalidateEntry(parent: parent, name: name)
    }
    for name in changed {
      guard let before = old.entry(name), let place = place(of: before, in: new.folder),
        let known = tree.withLock({ $0.node(of: place) })
      else { continue }
      // A file that is open keeps its inode and its bytes; the name leads to another inode.
      if known.node.opens == 0, new.entry(name)?.isFolder == before.isFolder {
        notifier.invalidateInode(known.inode)
      } else {
        notifier.invalidateEntry(parent: parent, name: name)
      }
    }
  }
}
