import BucketStore
import FileCache
import PendingQueue
import Platform

/// What is shown in place of, or beside, what the store has: pending files, and changes that the
/// kept listings do not know of yet.
///
/// The queue is looked at before the changes, and the changes before the listing: a file that is
/// being handed over is in each of them before it leaves the one before, so its name never vanishes.
extension FileSystem {
  /// The entry of a name, with its size known if it can be.
  func find(_ name: ByteString, in folder: FolderName, _ caller: Caller) throws(Failure) -> (
    entry: TreeEntry?, believed: Span
  ) {
    guard let queue else { return try stored(name, in: folder, caller) }
    if queue.isEmpty { return try changed(name, in: folder, caller) }
    guard let segment = listings.options.names.segment(of: name) else {
      return try changed(name, in: folder, caller)
    }
    let object = folder.object(segment)
    if let pending = queue.entry(for: object), !listings.options.names.isMarker(segment) {
      return (TreeEntry(pending, name: name), listings.options.maxAge)
    }
    let inner = folder.folder(segment)
    if queue.hasEntries(below: inner.prefix, in: inner.bucket) {
      return (pendingFolder(inner, name: name, in: folder), listings.options.maxAge)
    }
    if queue.isDeleted(object) || isGoing(inner, name, in: folder, queue) {
      return (nil, listings.options.maxAge)
    }
    do throws(Failure) {
      return try changed(name, in: folder, caller)
    } catch {
      // There may be other buckets than those that the queue knows.
      guard !folder.isBuckets, pendingAnswer(for: folder, error) != nil else { throw error }
      return (nil, .zero)
    }
  }

  /// Whether a folder was removed here, and the store may show it until what was on its way into it
  /// is deleted.
  func isGoing(
    _ inner: FolderName, _ name: ByteString, in folder: FolderName, _ queue: PendingQueue
  ) -> Bool {
    queue.hasDeletions(below: inner.prefix, in: inner.bucket)
      && recent.withLock { $0.isGone(name, in: folder) }
  }

  /// Whether a folder that the store has denied was stored while it was asked.
  func wasJustStored(_ folder: FolderName, _ failure: Failure) -> Bool {
    guard failure.errno == .noEntry, let parent = folder.parent,
      let name = listings.options.names.name(of: folder.segment)
    else { return false }
    let change = recent.withLock { $0.change(name, in: parent, since: Self.aWhileAgo) }
    return change?.entry?.isFolder ?? false
  }

  /// Before this no question was put that is still to be answered.
  private static var aWhileAgo: Timestamp { .now + .seconds(60) * -1 }

  /// What the store has under a name, or was just given.
  private func changed(_ name: ByteString, in folder: FolderName, _ caller: Caller) throws(Failure)
    -> (entry: TreeEntry?, believed: Span)
  {
    if recent.withLock({ $0.isEmpty }) { return try stored(name, in: folder, caller) }
    let maxAge = listings.options.maxAge
    if let change = change(of: name, in: folder) {
      let age = Timestamp.now.since(change.at)
      if age >= .zero, age < maxAge {
        return (
          change.entry.map { TreeEntry($0) },
          Span(nanoseconds: maxAge.nanoseconds - age.nanoseconds)
        )
      }
    }
    let found: (entry: TreeEntry?, believed: Span)
    do throws(Failure) {
      found = try stored(name, in: folder, caller)
    } catch {
      // What was asked before something was stored in the folder may deny the folder itself.
      guard error.errno == .noEntry else { throw error }
      let change = recent.withLock { $0.change(name, in: folder, since: Self.aWhileAgo) }
      guard change != nil || wasJustStored(folder, error) else { throw error }
      return (change?.entry.map { TreeEntry($0) }, .zero)
    }
    guard let change = change(of: name, in: folder) else { return found }
    return (change.entry.map { TreeEntry($0) }, found.believed)
  }

  /// The change of a name that the kept listing of its folder does not show.
  private func change(of name: ByteString, in folder: FolderName) -> RecentChanges.Change? {
    let asked = listings.remembered(folder)?.fetchedAt ?? .epoch
    return recent.withLock { $0.change(name, in: folder, since: asked) }
  }

  private func stored(_ name: ByteString, in folder: FolderName, _ caller: Caller) throws(Failure)
    -> (entry: TreeEntry?, believed: Span)
  {
    let (entry, believed) = try findStored(name, in: folder, caller)
    return (entry.map { TreeEntry($0) }, believed)
  }

  /// The line of a folder in which something is pending.
  func pendingFolder(_ folder: FolderName, name: ByteString, in parent: FolderName)
    -> TreeEntry
  {
    if let listed = listings.remembered(parent)?.entry(name), listed.isFolder {
      return TreeEntry(listed)
    }
    let made = queue?.entry(for: marker(of: folder))
    return TreeEntry(
      ListingEntry(name: name, kind: .folder, modified: made?.modified ?? madeAt))
  }

  /// What is to be put into a listing: by name, nil for what is not to be shown.
  func changes(of listing: Listing) -> [ByteString: TreeEntry?] {
    let folder = listing.folder
    var changes: [ByteString: TreeEntry?] = [:]
    let pending = queue.flatMap { queue in
      queue.isEmpty ? nil : queue.folder(folder.prefix, in: folder.bucket)
    }
    // After the queue: what has left it meanwhile is here.
    if queue != nil {
      let recent = recent.withLock { state in
        state.isEmpty ? [:] : state.changes(in: folder, since: listing.fetchedAt)
      }
      for (name, entry) in recent { changes[name] = .some(entry.map { TreeEntry($0) }) }
    }
    guard let pending else { return changes }
    let names = listings.options.names
    for segment in pending.deleted {
      if let name = names.name(of: segment) { changes[name] = .some(nil) }
    }
    for segment in pending.emptied {
      guard let name = names.name(of: segment) else { continue }
      // As in `isGoing`.
      if recent.withLock({ $0.isGone(name, in: folder) }) { changes[name] = .some(nil) }
    }
    for (segment, entry) in pending.files where !names.isMarker(segment) {
      if let name = names.name(of: segment) { changes[name] = TreeEntry(entry, name: name) }
    }
    for segment in pending.folders {
      guard let name = names.name(of: segment) else { continue }
      // The store's own line of the folder will do.
      if changes[name] == nil, listing.entry(name)?.isFolder ?? false { continue }
      changes[name] = pendingFolder(folder.folder(segment), name: name, in: folder)
    }
    return changes
  }

  /// An empty listing for a folder that only the queue knows, where the store has none of it or
  /// cannot be asked.
  func pendingAnswer(for folder: FolderName, _ failure: Failure) -> Listings.Answer? {
    guard failure.lane == nil, failure.errno != .interrupted, isPending(folder) else { return nil }
    guard failure.errno == .noEntry, !folder.isBuckets else {
      return listings.standIn(folder) ?? Listings.Answer.empty(folder)
    }
    // What was stored in it meanwhile is not to be hidden by an answer that is older.
    let isChanging = recent.withLock { !$0.changes(in: folder, since: Self.aWhileAgo).isEmpty }
    return isChanging ? Listings.Answer.empty(folder) : listings.plant(folder)
  }

  /// Whether this device knows something of a folder, and so need not wait long for the store.
  func isKnown(_ folder: FolderName) -> Bool {
    listings.isKept(folder) || isPending(folder)
  }

  private func isPending(_ folder: FolderName) -> Bool {
    guard let queue, !queue.isEmpty else { return false }
    return queue.hasEntries(below: folder.prefix, in: folder.bucket)
  }

  /// Stands for the answer of a store that is not waited for, about a folder of which no listing is
  /// kept.
  ///
  /// - Throws: `StoreError` where the queue knows the folder; else it returns nil.
  func unanswered(_ folder: FolderName) throws(StoreError) -> Listings.Answer? {
    guard isPending(folder) else { return nil }
    throw patience.reason?.error ?? StoreError(.timeout, "the store is silent")
  }

  /// Opens what is pending under a name for reading; nil when nothing is.
  func openPending(_ object: ObjectName, _ inode: UInt64, _ caller: Caller) throws(Failure)
    -> FileHandle?
  {
    guard let queue, !queue.isEmpty else { return nil }
    let file: PendingFile
    do throws(Errno) {
      guard let found = try queue.open(object, mayWait: caller.mayWait) else { return nil }
      file = found
    } catch .again {
      throw .takesTime
    } catch {
      throw Failure(error, "\(object): cannot open the pending file: \(error)", level: .error)
    }
    let facts = FileFacts(pendingSize: file.size, file.modified)
    guard let body = tree.withLock({ $0.open(inode, pending: facts) }) else {
      file.close()
      throw Failure(.noEntry, "inode \(inode) is not known")
    }
    body.read(from: file)
    return FileHandle(
      inode: inode, object: object, file: nil, body: body, keepsCache: false,
      onClose: { [self] in closed(inode) })
  }

  /// Opens what the open handles of a file have written that has lost its name; nil when that is
  /// nothing.
  func openDetached(_ object: ObjectName, _ inode: UInt64) -> FileHandle? {
    guard let file = tree.withLock({ $0[inode]?.body })?.file else { return nil }
    let facts = FileFacts(pendingSize: file.size, file.modified)
    guard let body = tree.withLock({ $0.open(inode, pending: facts) }) else { return nil }
    guard body.file != nil else {
      closed(inode)
      return nil
    }
    return FileHandle(
      inode: inode, object: object, file: nil, body: body, keepsCache: false,
      onClose: { [self] in closed(inode) })
  }

  /// Notes a change that the store has just told of, or that was made there: it shows from now on.
  ///
  /// - Parameter entry: nil for a name that is gone.
  func change(_ name: ByteString, in folder: FolderName, to entry: ListingEntry?) {
    let isRecent = recent.withLock { state in
      if state.isEmpty { return false }
      state.forget(name, in: folder)
      return true
    }
    if isRecent { listings.note(name, in: folder, entry) }
    listings.replace(name, in: folder, with: entry)
  }

  /// Notes a change that this device has made at the store.
  func noteStored(_ name: ByteString, in folder: FolderName, _ entry: ListingEntry?) {
    let isCrowded = recent.withLock { $0.set(name, in: folder, entry) }
    listings.note(name, in: folder, entry)
    if isCrowded { thinOut() }
  }

  /// Puts old changes into the listings in memory, so that they need not be remembered.
  private func thinOut() {
    let moment = Timestamp.now + RecentChanges.memory * -1
    for folder in recent.withLock({ $0.folders }) {
      let old = recent.withLock { $0.takeOld(in: folder, before: moment) }
      if !old.isEmpty { listings.learn(old.mapValues { ($0.entry, $0.at) }, in: folder) }
    }
  }

  /// Notes that a folder is at the store, as an object in it shows.
  ///
  /// - Parameter isNew: whether it may not have been there before, whatever its listing says.
  func noteStoredFolder(_ folder: FolderName, isNew: Bool = false) {
    var folder = folder
    var isNew = isNew
    while let parent = folder.parent, folder != options.root, !folder.isBucket,
      let name = listings.options.names.name(of: folder.segment)
    {
      let asked = listings.remembered(parent)
      let isListed = asked?.entry(name)?.isFolder ?? false
      let change = recent.withLock {
        $0.change(name, in: parent, since: asked?.fetchedAt ?? .epoch)
      }
      if !isNew {
        if let change, change.entry?.isFolder ?? false { return }
        if isListed, change == nil { return }
      }
      isNew = false
      noteStored(name, in: parent, ListingEntry(name: name, kind: .folder, modified: .now))
      folder = parent
    }
  }
}

extension FileSystem {
  /// The empty object that keeps a folder which holds nothing else.
  func marker(of folder: FolderName) -> ObjectName { folder.object(listings.options.names.marker) }
}
