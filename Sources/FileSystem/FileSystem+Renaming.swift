import BucketStore
import FileCache
import Glibc
import PendingQueue
package import Platform

/// Giving names: of what is pending in the queue alone, of what the store has at the store, before
/// the call returns.
extension FileSystem {
  /// A name that a file or folder has, or is to have.
  private struct End {
    let folder: FolderName
    let parent: UInt64
    let name: ByteString
    let object: ObjectName
    /// When it was asked what has the name.
    let asked: Timestamp
  }

  /// Gives a file or folder another name (FUSE_RENAME), in place of what has it.
  ///
  /// - Parameter flags: those of renameat2(2); RENAME_NOREPLACE alone is kept.
  /// - Throws: `Failure`; EXDEV for a folder that the store has (programs then copy it), EEXIST,
  ///   ENOTEMPTY, EISDIR, ENOTDIR, EINVAL, the errors of `create` for the new name and those of
  ///   `remove` for the old one.
  package func rename(
    _ name: ByteString, in parent: UInt64, to newName: ByteString, in newParent: UInt64,
    flags: UInt32, _ caller: Caller
  ) throws(Failure) {
    guard caller.lane > .fast else { throw .takesTime }
    let queue = try writable("\(name)")
    // RENAME_NOREPLACE of linux/fs.h is 1.
    guard flags & ~1 == 0 else {
      throw Failure(.invalid, "\(name): names are not exchanged")
    }
    let folder = try self.folder(parent)
    let newFolder = try self.folder(newParent)
    let found = try existing(name, in: folder, caller)
    guard let place = place(of: found.line, in: folder) else {
      throw Failure(.noEntry, "\(folder)\(name): is not there")
    }
    let object = try newObject(newName, in: newFolder, queue)
    try alone(with: .object(object), caller) { () throws(Failure) in
      try keepBytes(of: object, caller)
    }
    let asked = Timestamp.now
    let taken = try find(newName, in: newFolder, caller).entry
    if taken != nil, flags & 1 != 0 {
      throw Failure(.exists, "\(object): is there already")
    }
    let target = End(
      folder: newFolder, parent: newParent, name: newName, object: object, asked: asked)
    try touch(folder, caller)
    try touch(newFolder, caller)
    switch place {
    case .folder(let inner):
      let source = End(
        folder: folder, parent: parent, name: name, object: marker(of: inner), asked: asked)
      try renameFolder(inner, source, to: target, over: taken, queue, caller)
    case .object(let from):
      if from == object { return }
      guard !isStored(found) || caller.lane == .slow else { throw .mustWait }
      if taken?.isFolder ?? false { throw Failure(.isDirectory, "\(object): is a folder") }
      let source = End(folder: folder, parent: parent, name: name, object: from, asked: asked)
      try alone(with: place, caller) { () throws(Failure) in
        try keepFolder(of: from, name, queue)
        try renameFile(
          source, found, to: target, over: taken, mayReplace: flags & 1 == 0, queue, caller)
        tree.withLock {
          $0.rename(place, to: .object(object), parent: newParent, name: newName)
        }
      }
    }
  }

  // MARK: - Files

  private func renameFile(
    _ source: End, _ found: TreeEntry, to target: End, over taken: TreeEntry?, mayReplace: Bool,
    _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) {
    var found = found
    for _ in 0..<3 {
      guard let pending = found.pending else {
        return try renameStored(
          source, found, to: target, over: taken, mayReplace: mayReplace, queue, caller)
      }
      if try renamePending(source, pending, to: target, over: taken, queue, caller) { return }
      // It was stored at this very moment.
      found = try existing(source.name, in: source.folder, caller)
    }
    throw Failure(.busy, "\(source.object): is made again and again")
  }

  /// - Returns: false when it is not pending any more.
  private func renamePending(
    _ source: End, _ pending: PendingEntry, to target: End, over taken: TreeEntry?,
    _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) -> Bool {
    let hasBase: Bool
    if case .object = pending.record.base {
      // Where the store cannot be asked, nothing has happened yet.
      hasBase = try isBase(pending.record.base, of: pending.object, caller)
    } else {
      hasBase = false
    }
    do throws(Errno) {
      try changing(source.object) { () throws(Errno) in
        try changing(target.object) { () throws(Errno) in
          try queue.rename(source.object, to: target.object, base: base(of: target, taken))
        }
      }
    } catch .noEntry {
      return false
    } catch {
      throw Failure(
        error, "\(source.object): cannot be renamed: \(error)", level: Self.level(error))
    }
    guard case .object = pending.record.base else { return true }
    // Only now that nothing sends it under its old name any more: else what goes there could be
    // the only copy of what was sent.
    do throws(Failure) {
      // The only other copy of the file is about to go.
      if hasBase {
        try makeDurable(target.object, queue)
        caller.call.getsOn()
      }
      if try deleteBase(of: pending, caller) {
        forget(source.object, source.name, in: source.folder)
      }
    } catch {
      if taken == nil { renameBack(source, pending, from: target, queue) }
      throw error
    }
    return true
  }

  /// Undoes a renaming in the queue when the store kept the old name.
  private func renameBack(
    _ source: End, _ pending: PendingEntry, from target: End, _ queue: PendingQueue
  ) {
    do throws(Errno) {
      try changing(source.object) { () throws(Errno) in
        try changing(target.object) { () throws(Errno) in
          try queue.rename(target.object, to: source.object, base: pending.record.base)
        }
      }
    } catch {
      // Nothing is lost: it is found under its new name.
      Log.warning("\(target.object): has not got back its name \(source.object): \(error)")
    }
  }

  /// What the store has under a name that nothing is pending under: what was stored there since it
  /// was asked about, else what was found.
  private func base(of target: End, _ taken: TreeEntry?) -> PendingBase {
    // What was pending then, and is not any more, was being stored since before it was found.
    let since = taken?.pending == nil ? target.asked : .epoch
    let stored = recent.withLock { $0.change(target.name, in: target.folder, since: since) }
    if let stored {
      return stored.entry.map { .object(version: nil, tag: $0.tag) } ?? .absent
    }
    guard let taken, taken.pending == nil else { return .absent }
    return .object(version: nil, tag: taken.line.tag)
  }

  private func makeDurable(_ object: ObjectName, _ queue: PendingQueue) throws(Failure) {
    do throws(Errno) {
      guard let file = try queue.open(object) else { return }
      defer { file.close() }
      try file.sync()
    } catch {
      throw Failure(error, "\(object): is not safely on this device: \(error)", level: .error)
    }
  }

  private func renameStored(
    _ source: End, _ found: TreeEntry, to target: End, over taken: TreeEntry?, mayReplace: Bool,
    _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) {
    // What is still to be deleted under the name would take a moved object with it.
    if taken?.pending != nil || queue.isDeleted(target.object) {
      return try replacePending(source, found, by: target, taken, queue, caller)
    }
    let info = try moveStored(
      source.object, to: target.object, replacing: taken != nil, mayReplace: mayReplace,
      found.line, queue, caller)
    let line = ListingEntry(
      name: target.name, kind: .file, size: info.size ?? found.line.size, tag: info.tag,
      modified: info.modified, contentType: info.contentType)
    var kept = kept(of: .object(source.object), found.line) ?? KeptAttributes()
    kept.tag = line.tag
    kept.size = line.size
    // What the file shows as its time is the file's, whatever name it has.
    kept.modified = kept.modified ?? found.line.modified
    forget(target.object, target.name, in: target.folder)
    keptAttributes.set(
      kept, of: target.object.key.dropFirst(target.folder.prefix.count), in: target.folder)
    noteStored(target.name, in: target.folder, line)
    forget(source.object, source.name, in: source.folder)
    tree.withLock { tree in
      let inode = tree.inode(of: .object(source.object))
      tree.nodes[inode]?.body?.base = .object(version: info.version, tag: info.tag)
      tree.nodes[inode]?.told = FileFacts(line)
    }
  }

  /// Puts the bytes of an object into the queue in place of what is pending under another name, as
  /// the queue alone knows how to replace that safely; then the object goes.
  private func replacePending(
    _ source: End, _ found: TreeEntry, by target: End, _ taken: TreeEntry?,
    _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) {
    guard caller.lane == .slow else { throw .mustWait }
    let inode = tree.withLock { $0.inode(of: .object(source.object)) }
    let bytes: OpenFile
    do throws(StoreError) {
      bytes = try cache.open(source.object, expected: found.line.size, caller.call)
    } catch {
      throw Failure(error, source.object.description)
    }
    defer { bytes.close() }
    let version = PendingBase.object(version: bytes.info.version, tag: bytes.info.tag)
    guard try isBase(version, of: source.object, caller) else {
      throw changedMeanwhile(source.object)
    }
    let shown = attributes(of: found, at: .object(source.object), inode: inode)
    let new = NewFile(base: .absent, mode: shown.mode & 0o777, modified: shown.modified)
    let file = try adopt(
      bytes, as: target.object, new, queue, base: { self.base(of: target, taken) }, caller)
    defer { file.close() }
    do throws(Errno) {
      try changing(target.object) { () throws(Errno) in
        try file.flush()
        try file.sync()
      }
    } catch {
      throw Failure(
        error, "\(target.object): is not safely on this device: \(error)", level: .error)
    }
    caller.call.getsOn()
    guard try deleteStored(source.object, ifStill: version, caller) else {
      throw changedMeanwhile(source.object)
    }
    forget(source.object, source.name, in: source.folder)
    let facts = FileFacts(pendingSize: file.size, file.modified)
    tree.withLock { $0.becomePending(inode, facts) }
  }

  /// Somebody else has stored another version: the kernel asks anew, and once more, after ESTALE.
  private func changedMeanwhile(_ object: ObjectName) -> Failure {
    cache.drop(object)
    return Failure(.stale, "\(object): has changed at the store meanwhile", level: .info)
  }

  // MARK: - Folders

  /// Of a folder that only the queue knows, every file gets its new name; one that the store has
  /// is for programs to copy.
  private func renameFolder(
    _ inner: FolderName, _ source: End, to target: End, over taken: TreeEntry?,
    _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) {
    let segment = target.object.key.dropFirst(target.folder.prefix.count)
    let new = target.folder.folder(segment)
    if new == inner { return }
    guard !inner.contains(new) else {
      throw Failure(.invalid, "\(inner): cannot become a folder in itself")
    }
    if let taken {
      guard taken.isFolder else { throw Failure(.notDirectory, "\(new): is a file") }
      try checkEmpty(new, caller)
    }
    guard !source.folder.isBuckets, inner.bucket == new.bucket,
      !isStored(source.name, in: source.folder)
    else { throw Failure(.crossDevice, "\(inner): the store has it, so it has to be copied") }
    // A file of it may be the store's by the time that its turn comes: then half would be renamed.
    guard caller.lane == .slow else { throw .mustWait }
    if taken != nil { try removeFolder(target.name, from: target.parent, caller) }
    try keepFolder(source.folder, without: source.name, inner.segment, queue)
    // Again, for what was made in it meanwhile.
    for _ in 0..<8 where queue.hasEntries(below: inner.prefix, in: inner.bucket) {
      // A name once, however many records of it wait to be given up.
      let files = Set(queue.entries.map(\.object)).filter { object in
        object.bucket == inner.bucket && object.key.hasPrefix(inner.prefix)
      }
      for object in files.sorted(by: { $0.key < $1.key }) {
        let moved = ObjectName(
          bucket: object.bucket, key: new.prefix + object.key.dropFirst(inner.prefix.count))
        try renameInFolder(object, to: moved, queue, caller)
      }
    }
    let kept = keptAttributes.attributes(of: inner.segment + "/", in: source.folder)
    keptAttributes.set(kept, of: segment + "/", in: target.folder)
    keptAttributes.set(nil, of: inner.segment + "/", in: source.folder)
    keptAttributes.rename(inner, to: new)
    if !listings.isKept(new) { listings.plant(new) }
    tree.withLock { $0.renameFolder(inner, to: new, parent: target.parent, name: target.name) }
  }

  private func renameInFolder(
    _ object: ObjectName, to target: ObjectName, _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) {
    do throws(Errno) {
      try changing(object) { () throws(Errno) in
        try changing(target) { () throws(Errno) in
          try queue.rename(object, to: target, base: .absent)
        }
      }
    } catch {
      guard error == .noEntry else {
        throw Failure(error, "\(object): cannot be renamed: \(error)", level: Self.level(error))
      }
      // It was stored at this very moment.
      do throws(Failure) {
        let info = try moveStored(
          object, to: target, replacing: false, mayReplace: false, justStored(object), queue,
          caller)
        noteMoved(object, to: target, info)
      } catch {
        // Or removed.
        guard error.errno == .noEntry else { throw error }
      }
    }
  }

  /// What was noted of an object when it was stored a moment ago.
  private func justStored(_ object: ObjectName) -> ListingEntry? {
    let folder = FolderName(containing: object)
    guard let name = listings.options.names.name(of: object.key.dropFirst(folder.prefix.count))
    else { return nil }
    return recent.withLock { $0.change(name, in: folder, since: .epoch) }?.entry
  }

  private func noteMoved(_ object: ObjectName, to target: ObjectName, _ info: ObjectInfo) {
    let names = listings.options.names
    let folder = FolderName(containing: object)
    let newFolder = FolderName(containing: target)
    if let name = names.name(of: object.key.dropFirst(folder.prefix.count)) {
      forget(object, name, in: folder)
    }
    if let name = names.name(of: target.key.dropFirst(newFolder.prefix.count)) {
      noteStored(
        name, in: newFolder,
        ListingEntry(
          name: name, kind: .file, size: info.size, tag: info.tag, modified: info.modified,
          contentType: info.contentType))
      noteStoredFolder(newFolder)
    }
  }
}
