import BucketStore
import FileCache
import Glibc
import Platform

extension FileSystem {
  /// Opens a file (FUSE_OPEN): a copy that was just confirmed, else the store's answer,
  /// else the copy.
  ///
  /// ESTALE means that the object is no longer what the kernel was told: it looks the name up anew
  /// and opens it again by itself (path_openat in fs/namei.c), so that size and bytes agree.
  /// What is pending is opened as it is, and never asked about.
  /// - Parameter flags: those of open(2).
  /// - Throws: `Failure`; EISDIR, EROFS, ESTALE, or the store's failure when no copy is kept.
  package func open(_ inode: UInt64, flags: CInt, _ caller: Caller) throws(Failure) -> FileHandle {
    let node = try node(inode)
    guard case .object(let object) = node.place else {
      throw Failure(.isDirectory, "inode \(inode) is a folder")
    }
    if flags & O_ACCMODE != O_RDONLY {
      return try openForWriting(object, node, inode, flags: flags, caller)
    }
    if flags & O_TRUNC != 0 {
      guard caller.mayWait else { throw .takesTime }
      let handle = try openForWriting(object, node, inode, flags: flags, caller)
      defer { handle.close() }
      try flush(handle, caller)
    }
    if node.isDetached {
      if let handle = openDetached(object, inode) { return handle }
      if node.isUnlinked { throw Failure(.stale, "\(object): was removed") }
    } else if let handle = try openPending(object, inode, caller) {
      return handle
    }
    return try openStored(object, node, inode, isWriter: false, caller)
  }

  /// Opens what the store has, or the copy of it.
  func openStored(
    _ object: ObjectName, _ node: Node, _ inode: UInt64, isWriter: Bool, _ caller: Caller
  ) throws(Failure) -> FileHandle {
    if let file = parked.take(object) ?? confirmed(object, node, caller.lane) {
      readAhead(after: object, node, isKept: true, caller)
      return try admit(file, node, inode, isWriter: isWriter, caller)
    }
    guard caller.lane > .fast else { throw .takesTime }
    let file: OpenFile?
    do throws(StoreError) {
      file = try ask(object, node, caller)
    } catch {
      throw refusal(error, object, node)
    }
    guard let file else { throw .mustWait }
    return try admit(file, node, inode, isWriter: isWriter, caller)
  }

  /// Opens what the store says is current; the copy, when it says nothing for too long.
  ///
  /// - Returns: nil when only the store can answer, and may not be waited for here.
  private func ask(_ object: ObjectName, _ node: Node, _ caller: Caller) throws(StoreError)
    -> OpenFile?
  {
    if cache.copy(of: object) != nil {
      let file = try patience.ask(.contents, caller.call) { [self] (call) throws(StoreError) in
        confirmBurst(object, call)
        if let file = confirmed(object, node, .slow) { return file }
        return try cache.open(
          object, expected: node.told?.size, listed: listed(object, node), call)
      } failure: { file in
        file.doubt
      } late: { file in
        file.close()
      }
      if let file = file ?? cache.openKept(object) { return file }
    }
    guard caller.lane == .slow else { return nil }
    if patience.isAnswered(.contents) {
      readAhead(after: object, node, isKept: false, caller)
    }
    return try patience.insist(.contents, about: .object(object), caller.call) {
      (call) throws(StoreError) in
      try cache.open(object, expected: node.told?.size, listed: listed(object, node), call)
    }
  }

  /// The version that the newest listing shows.
  private func listed(_ object: ObjectName, _ node: Node) -> ListedVersion? {
    guard let listing = listings.kept(FolderName(containing: object)), !listing.isPartial,
      let entry = listing.entry(node.name), let tag = entry.tag
    else { return nil }
    return ListedVersion(tag: tag, modified: entry.modified)
  }

  /// A copy that was just confirmed, unless a listing has shown another version since.
  private func confirmed(_ object: ObjectName, _ node: Node, _ lane: Lane) -> OpenFile? {
    guard let file = cache.openConfirmed(object, repairing: lane > .fast) else { return nil }
    if node.told?.isVersion(of: FileFacts(file)) ?? true { return file }
    file.close()
    return nil
  }

  /// Makes a handle of a file, if its version is the one that the kernel was told of.
  private func admit(
    _ file: OpenFile, _ node: Node, _ inode: UInt64, isWriter: Bool, _ caller: Caller
  ) throws(Failure) -> FileHandle {
    let mayRefuse = caller.lane > .fast
    let opening = tree.withLock {
      $0.open(inode, FileFacts(file), content: file.version, mayRefuse: mayRefuse)
    }
    var keepsCache = false
    switch opening {
    case .opened(let keeps): keepsCache = keeps
    case .renewed: forgetAttributes(of: inode)
    case .stale where !mayRefuse:
      parked.park(file)
      throw .takesTime
    case .stale:
      correct(file, node)
      parked.park(file)
      throw Failure(Errno(ESTALE), "\(file.object): has changed since it was listed")
    case .unknown:
      file.close()
      throw Failure(.noEntry, "inode \(inode) is not known")
    }
    let body = queue == nil ? nil : tree.withLock { $0.body(of: inode) }
    return FileHandle(
      inode: inode, object: file.object, file: file, body: body, isWriter: isWriter,
      keepsCache: keepsCache,
      onClose: { [self] in closed(inode) })
  }

  /// One open handle of an inode less.
  func closed(_ inode: UInt64) {
    tree.withLock { $0.closed(inode) }?.close()
  }

  /// The store has just said something newer than the listing.
  private func correct(_ file: OpenFile, _ node: Node) {
    let folder = FolderName(containing: file.object)
    guard let listed = listings.kept(folder)?.entry(node.name), !listed.isFolder else { return }
    var entry = listed
    entry.size = file.size
    entry.tag = file.info.tag
    entry.modified = file.info.modified ?? listed.modified
    entry.contentType = file.info.contentType ?? listed.contentType
    change(node.name, in: folder, to: entry)
  }

  /// Why an open failed; when that is because the object is gone, its name goes too.
  private func refusal(_ error: StoreError, _ object: ObjectName, _ node: Node) -> Failure {
    guard error.kind == .notFound else { return Failure(error, object.description) }
    guard store.session.isCredible else {
      return Failure(.permission, "\(object): nobody is signed in, or not yet again")
    }
    change(node.name, in: FolderName(containing: object), to: nil)
    return Failure(error, object.description)
  }

  /// Of several copies opened one after the other in a folder, all but the first are confirmed by
  /// one listing instead of by a question each.
  private func confirmBurst(_ object: ObjectName, _ call: Call) {
    guard listings.options.maxAge > .zero, patience.isAnswered(.names) else { return }
    let folder = FolderName(containing: object)
    let isBurst = opens.withLock { $0.opening(folder) }
    guard isBurst else { return }
    do throws(StoreError) {
      try patience.insist(.names, about: .folder(folder), call) { (call) throws(StoreError) in
        try listings.confirm(folder, call)
      }
    } catch {
      // The open itself asks the store, and says what is wrong.
      Log.debug("\(folder): not confirmed by a listing: \(error)")
    }
  }

  /// Reads from an open file (FUSE_READ) until the buffer is full or the file ends.
  ///
  /// - Returns: how many bytes were read; fewer than asked only at the end.
  /// - Throws: `Failure`; EIO for bytes that are damaged, EINTR when the caller was interrupted.
  package func read(
    _ handle: FileHandle, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64,
    _ caller: Caller
  ) throws(Failure) -> Int {
    guard offset >= 0 else { throw Failure(.invalid, "\(handle.object): offset below zero") }
    if let pending = handle.body?.file {
      do throws(Errno) {
        return try pending.read(buffer, at: offset)
      } catch {
        throw Failure(
          error, "\(handle.object): cannot read the pending file: \(error)", level: .error)
      }
    }
    guard let file = handle.file else {
      throw Failure(.badHandle, "\(handle.object): is not open any more")
    }
    let count: Int?
    do throws(StoreError) {
      count =
        caller.lane == .slow
        ? try file.read(buffer, at: offset, caller.call)
        : try file.readAvailable(buffer, at: offset)
    } catch {
      throw Failure(error, handle.object.description)
    }
    guard let count else { throw .mustWait }
    return count
  }
}
