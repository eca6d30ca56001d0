import BucketStore
import FileCache
import PendingQueue
package import Platform

/// Removing names: what is only pending at once and in the queue alone, what the store has at the
/// store, before the call returns.
extension FileSystem {
  /// Removes a file (FUSE_UNLINK). Handles that are open go on reading and writing it.
  ///
  /// - Throws: `Failure`; ENOENT, EISDIR, EROFS, ENETUNREACH and its like where the store has it and
  ///   cannot be asked, or the store's refusal.
  package func remove(_ name: ByteString, from parent: UInt64, _ caller: Caller) throws(Failure) {
    guard caller.lane > .fast else { throw .takesTime }
    let queue = try writable("\(name)")
    let folder = try folder(parent)
    let found = try existing(name, in: folder, caller)
    guard !found.isFolder else { throw Failure(.isDirectory, "\(folder)\(name): is a folder") }
    guard case .object(let object) = place(of: found.line, in: folder) else {
      throw Failure(.noEntry, "\(folder)\(name): is not there")
    }
    guard !isStored(found) || caller.lane == .slow else { throw .mustWait }
    try touch(folder, caller)
    try alone(with: .object(object), caller) { () throws(Failure) in
      try keepBytes(of: object, caller)
      try keepFolder(of: object, name, queue)
      try remove(object, name, found, queue, caller)
      tree.withLock { $0.unlink(.object(object)) }
    }
  }

  /// Whether changing its name is a matter of the store.
  func isStored(_ found: TreeEntry) -> Bool {
    found.pending.map { $0.record.base != .absent } ?? true
  }

  private func remove(
    _ object: ObjectName, _ name: ByteString, _ found: TreeEntry, _ queue: PendingQueue,
    _ caller: Caller
  ) throws(Failure) {
    let folder = FolderName(containing: object)
    var found: TreeEntry? = found
    // Again, where it was stored at this very moment.
    for _ in 0..<3 {
      guard let entry = found else { return }
      guard let pending = entry.pending else {
        try deleteStored(object, caller)
        forget(object, name, in: folder)
        try removePending(object, queue)
        return
      }
      if case .object = pending.record.base {
        if try deleteBase(of: pending, caller) { forget(object, name, in: folder) }
      }
      if try removePending(object, queue) { return }
      found = try find(name, in: folder, caller).entry
    }
    throw Failure(.busy, "\(object): is made again and again")
  }

  /// - Returns: false when nothing was pending under the name.
  @discardableResult
  private func removePending(_ object: ObjectName, _ queue: PendingQueue) throws(Failure) -> Bool {
    do throws(Errno) {
      try changing(object) { () throws(Errno) in try queue.remove(object) }
      return true
    } catch .noEntry {
      return false
    } catch {
      throw Failure(error, "\(object): cannot be removed: \(error)", level: .error)
    }
  }

  /// Deletes an object that may be gone already.
  func deleteStored(_ object: ObjectName, _ caller: Caller) throws(Failure) {
    guard let store = queue?.store else { return }
    guard caller.lane == .slow else { throw .mustWait }
    do throws(StoreError) {
      try store.delete(object, caller.call)
    } catch {
      if error.kind == .notFound, store.session.isCredible { return }
      throw Failure(error, object.description)
    }
  }

  /// Deletes the object that a pending file was based on, unless it is another one by now.
  ///
  /// - Returns: whether the store has nothing under the name any more.
  func deleteBase(of pending: PendingEntry, _ caller: Caller) throws(Failure) -> Bool {
    try deleteStored(pending.object, ifStill: pending.record.base, caller)
  }

  /// Deletes one version of an object.
  ///
  /// - Returns: whether the store has nothing under the name any more.
  func deleteStored(_ object: ObjectName, ifStill version: PendingBase, _ caller: Caller)
    throws(Failure) -> Bool
  {
    guard let store = queue?.store else { return false }
    guard caller.lane == .slow else { throw .mustWait }
    do throws(StoreError) {
      let info = try store.info(object, caller.call)
      guard version.matches(info) else { return false }
      try store.delete(object, caller.call)
      return true
    } catch {
      if error.kind == .notFound, store.session.isCredible { return true }
      throw Failure(error, object.description)
    }
  }

  /// Whether the store has a version of an object and no other.
  func isBase(_ version: PendingBase, of object: ObjectName, _ caller: Caller) throws(Failure)
    -> Bool
  {
    guard let store = queue?.store else { return false }
    guard caller.lane == .slow else { throw .mustWait }
    do throws(StoreError) {
      return version.matches(try store.info(object, caller.call))
    } catch {
      if error.kind == .notFound, store.session.isCredible { return false }
      throw Failure(error, object.description)
    }
  }

  /// Forgets what is kept of an object that the store no longer has.
  func forget(_ object: ObjectName, _ name: ByteString, in folder: FolderName) {
    cache.drop(object)
    keptAttributes.set(nil, of: object.key.dropFirst(folder.prefix.count), in: folder)
    noteStored(name, in: folder, nil)
  }

  /// Puts a folder's own object into the queue when the last other one is about to go: a folder
  /// stays when it is empty.
  func keepFolder(of object: ObjectName, _ name: ByteString, _ queue: PendingQueue)
    throws(Failure)
  {
    let folder = FolderName(containing: object)
    try keepFolder(folder, without: name, object.key.dropFirst(folder.prefix.count), queue)
  }

  func keepFolder(
    _ folder: FolderName, without name: ByteString, _ segment: ByteString, _ queue: PendingQueue
  ) throws(Failure) {
    guard !folder.isBuckets, !folder.isBucket, folder != options.root,
      !queue.hasEntries(in: folder.prefix, of: folder.bucket, besides: segment),
      let listing = listings.kept(folder), listing.hiddenKeys.isEmpty
    else { return }
    let recent = recent.withLock { $0.changes(in: folder, since: listing.fetchedAt) }
    if recent.contains(where: { $0.key != name && $0.value != nil }) { return }
    // From the end, since what removes everything begins at the front.
    var index = listing.count
    while index > 0 {
      index -= 1
      let other = listing[index].name
      if other == name { continue }
      guard let change = recent[other] else { return }
      if change != nil { return }
    }
    do throws(Failure) {
      try keepFolder(folder, queue)
    } catch {
      // Removing is how a person makes room: better without the folder than not at all.
      guard error.errno == .noSpace else { throw error }
      Log.info("\(folder) goes with its last file: there is no room to keep it")
    }
  }

  /// Removes a folder (FUSE_RMDIR), with the empty object that keeps it.
  ///
  /// - Throws: `Failure`; ENOTEMPTY, ENOTDIR, EPERM for a bucket, or as `remove`.
  package func removeFolder(_ name: ByteString, from parent: UInt64, _ caller: Caller)
    throws(Failure)
  {
    guard caller.lane > .fast else { throw .takesTime }
    let queue = try writable("\(name)")
    let folder = try folder(parent)
    let found = try existing(name, in: folder, caller)
    guard found.isFolder, case .folder(let inner) = place(of: found.line, in: folder) else {
      throw Failure(.notDirectory, "\(folder)\(name): is a file")
    }
    guard !folder.isBuckets else { throw Failure(.notPermitted, "\(name): is a bucket") }
    try checkEmpty(inner, caller)
    let isStored = isStored(name, in: folder)
    guard !isStored || caller.lane == .slow else { throw .mustWait }
    try touch(folder, caller)
    try keepFolder(folder, without: name, inner.segment, queue)
    let wasPending = queue.entry(for: marker(of: inner)) != nil
    if isStored {
      do throws(StoreError) {
        let mark = marker(of: inner)
        let gone = try queue.store.delete([mark.key], in: inner.bucket, caller.call)
        // One that is just being stored is seen to below.
        if !gone.contains(mark.key), !wasPending { try checkGone(mark, queue.store, caller) }
      } catch {
        throw Failure(error, inner.description)
      }
    }
    // What keeps it may have been stored at this very moment.
    if try !removePending(marker(of: inner), queue), wasPending {
      try deleteStored(marker(of: inner), caller)
    }
    keptAttributes.set(nil, of: inner.segment + "/", in: folder)
    noteStored(name, in: folder, nil)
    tree.withLock { $0.unlink(.folder(inner)) }
  }

  /// - Throws: `StoreError`; `refused` when an object that was not deleted is there all the same.
  private func checkGone(_ object: ObjectName, _ store: any WritableStore, _ caller: Caller)
    throws(StoreError)
  {
    do throws(StoreError) {
      _ = try store.info(object, caller.call)
    } catch {
      if error.kind == .notFound, store.session.isCredible { return }
      throw error
    }
    throw StoreError(.refused, "the store has not deleted what keeps the folder")
  }

  /// - Throws: `Failure`; ENOTEMPTY when a folder holds anything, be it what cannot be shown.
  func checkEmpty(_ folder: FolderName, _ caller: Caller) throws(Failure) {
    let listing: Listing
    do throws(Failure) {
      listing = try answer(for: folder, caller).listing
    } catch {
      // Gone already, with the last file in it.
      guard error.errno == .noEntry else { throw error }
      return
    }
    guard listing.hiddenKeys.isEmpty,
      MergedListing(listing, changes: changes(of: listing)).count == 0
    else { throw Failure(.notEmpty, "\(folder): is not empty") }
  }

  // MARK: - Parts

  /// Whether the store has a folder, as far as is known.
  func isStored(_ name: ByteString, in folder: FolderName) -> Bool {
    let listing = listings.kept(folder)
    if let change = recent.withLock({
      $0.change(name, in: folder, since: listing?.fetchedAt ?? .epoch)
    }) {
      return change.entry?.isFolder ?? false
    }
    return listing?.entry(name)?.isFolder ?? false
  }

  /// - Throws: `Failure`; ENOENT.
  func existing(_ name: ByteString, in folder: FolderName, _ caller: Caller) throws(Failure)
    -> TreeEntry
  {
    guard name.count <= KeyNames.longestName else {
      throw Failure(.nameTooLong, "\(folder)\(name): name is too long")
    }
    guard KeyNames.isName(name), let found = try find(name, in: folder, caller).entry else {
      throw Failure(.noEntry, "\(folder)\(name): is not there")
    }
    return found
  }

  /// Changes where the bytes of a file belong while none of its handles makes them others.
  func alone(
    with place: Place, _ caller: Caller, _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    guard let open = tree.withLock({ $0.node(of: place)?.node.body }) else { return try body() }
    try open.exclusively(caller, body)
  }
}
