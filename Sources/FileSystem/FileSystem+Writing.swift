import BucketStore
import FileCache
import Glibc
import PendingQueue
import Platform

/// Changing the bytes of files.
///
/// An object that is opened for change is fetched first, or its copy is used, and becomes a pending
/// file at its first write; one that is emptied need not be fetched.
extension FileSystem {
  /// Opens a file for writing, emptied with O_TRUNC.
  func openForWriting(
    _ object: ObjectName, _ node: Node, _ inode: UInt64, flags: CInt, _ caller: Caller
  ) throws(Failure) -> FileHandle {
    let queue = try writable("\(object)")
    let truncates = flags & O_TRUNC != 0
    if let handle = share(inode, object, node.isDetached ? nil : queue) {
      if truncates {
        do throws(Failure) {
          try change(handle, caller) { (file) throws(Errno) in
            try file.truncate(to: 0, mayWait: caller.mayWait)
          }
        } catch {
          handle.close()
          throw error
        }
      }
      return handle
    }
    // Its name is another file's: the kernel looks it up anew.
    if node.isDetached {
      throw Failure(.stale, "\(object): its name leads to another file by now")
    }
    if let file = try edit(object, queue, keepingBytes: !truncates, caller) {
      return try handle(file, inode, object, isWriter: true)
    }
    guard truncates else { return try openStored(object, node, inode, isWriter: true, caller) }
    let (found, _) = try find(node.name, in: FolderName(containing: object), caller)
    let new = newFile(over: found, at: .object(object))
    let file = try makePending(object) { () throws(Errno) in
      try queue.create(object, new, mayWait: caller.mayWait)
    }
    return try handle(file, inode, object, isWriter: true)
  }

  /// One more handle of a file that is being written already; nil when it is not.
  ///
  /// - Parameter queue: where it has to be pending under its name; nil for a file that has lost it.
  private func share(_ inode: UInt64, _ object: ObjectName, _ queue: PendingQueue?) -> FileHandle? {
    guard let body = tree.withLock({ $0[inode]?.body }), let file = body.writable else {
      return nil
    }
    if let queue, queue.entry(for: object)?.id != file.id { return nil }
    let facts = FileFacts(pendingSize: file.size, file.modified)
    guard let body = tree.withLock({ $0.open(inode, pending: facts) }) else { return nil }
    // Its last writer may be closing it now.
    guard body.addWriter(of: file) else {
      closed(inode)
      return nil
    }
    return FileHandle(
      inode: inode, object: object, file: nil, body: body, isWriter: true, isCounted: true,
      keepsCache: false, onClose: { [self] in closed(inode) })
  }

  /// Opens what is pending under a name for writing; nil when nothing is.
  private func edit(
    _ object: ObjectName, _ queue: PendingQueue, keepingBytes: Bool, _ caller: Caller
  ) throws(Failure) -> PendingFile? {
    if queue.isEmpty { return nil }
    do throws(Errno) {
      return try changing(object) { () throws(Errno) in
        try queue.edit(object, keepingBytes: keepingBytes, mayWait: caller.mayWait)
      }
    } catch .noEntry {
      return nil
    } catch .again {
      throw .takesTime
    } catch {
      throw Failure(error, "\(object): cannot be written: \(error)", level: Self.level(error))
    }
  }

  /// A file in place of what the store has under its name.
  func newFile(over found: TreeEntry?, at place: Place) -> NewFile {
    guard let found, found.pending == nil else { return NewFile(base: .absent) }
    let kept = kept(of: place, found.line)
    return NewFile(
      base: .object(version: nil, tag: found.line.tag), mode: kept?.mode ?? 0o644,
      attributes: kept?.extended ?? [:])
  }

  // MARK: - Bytes

  /// Writes to an open file (FUSE_WRITE): all bytes, or none that count.
  ///
  /// - Throws: `Failure`; ENOSPC, EFBIG, or, at the first write to an object of the store, why it
  ///   cannot be fetched.
  package func write(
    _ handle: FileHandle, _ bytes: UnsafeRawBufferPointer, at offset: Int64, _ caller: Caller
  ) throws(Failure) {
    try change(handle, caller) { (file) throws(Errno) in
      try file.write(bytes, at: offset, mayWait: caller.mayWait)
    }
  }

  /// Reserves room, or punches a hole, by the flags of fallocate(2) (FUSE_FALLOCATE).
  ///
  /// - Throws: `Failure`, as `write`; EOPNOTSUPP where the disk's file system cannot.
  package func allocate(
    _ handle: FileHandle, mode: CInt, at offset: Int64, length: Int64, _ caller: Caller
  ) throws(Failure) {
    guard caller.lane > .fast else { throw .takesTime }
    try change(handle, caller) { (file) throws(Errno) in
      try file.allocate(mode, at: offset, length: length)
    }
  }

  /// Acknowledges what was written (FUSE_FLUSH, at each close): a kill loses nothing from here on.
  ///
  /// With `closeWaits`, the last writer's close waits until the store has the file.
  /// - Throws: `Failure`; ENOSPC when the record could not be written yet, the store's failure.
  package func flush(_ handle: FileHandle, _ caller: Caller) throws(Failure) {
    guard handle.isWriter, let file = handle.body?.writable else { return }
    // The one that is being closed counts as open until it is released.
    let isAwaited = options.closeWaits && handle.body?.writers == 1
    guard !isAwaited || caller.lane == .slow else { throw .mustWait }
    try acknowledge(file, handle, caller)
    if isAwaited { try store(file, handle, caller) }
  }

  private func store(_ file: PendingFile, _ handle: FileHandle, _ caller: Caller) throws(Failure) {
    do throws(StoreError) {
      try file.store(caller.call)
    } catch {
      throw Failure(error, "\(handle.object)")
    }
  }

  private func acknowledge(_ file: PendingFile, _ handle: FileHandle, _ caller: Caller)
    throws(Failure)
  {
    do throws(Errno) {
      try changing(handle.object) { () throws(Errno) in
        try file.flush(mayWait: caller.mayWait)
      }
    } catch .again {
      throw .takesTime
    } catch {
      throw Failure(
        error, "\(handle.object): is not safely on this device: \(error)", level: Self.level(error))
    }
  }

  /// Lets an open file go (FUSE_RELEASE), with what was written to it since it was closed, as
  /// through a mapping.
  ///
  /// - Throws: `Failure` to run again on a lane that may wait, and nothing else.
  package func release(_ handle: FileHandle, _ caller: Caller) throws(Failure) {
    if !caller.mayWait {
      do throws(Failure) {
        if let file = handle.body?.writable, handle.isWriter {
          try acknowledge(file, handle, caller)
        }
      } catch .takesTime {
        throw .takesTime
      } catch {
        // Nobody waits for an answer any more; the queue goes on trying, and tells of it.
        Log.warning(error.message)
      }
    }
    handle.close()
  }

  /// Makes an open file durable on this device (FUSE_FSYNC); with `syncWaits`, at the store too.
  ///
  /// - Throws: `Failure`; what fsync(2) says, or the store's failure.
  package func sync(_ handle: FileHandle, _ caller: Caller) throws(Failure) {
    guard let file = handle.body?.file else { return }
    guard caller.lane > .fast else { throw .takesTime }
    guard !options.syncWaits || caller.lane == .slow else { throw .mustWait }
    do throws(Errno) {
      if options.syncWaits { try file.flush() }
      try file.sync()
    } catch {
      throw Failure(
        error, "\(handle.object): is not safely on this device: \(error)", level: .error)
    }
    if options.syncWaits { try store(file, handle, caller) }
  }

  /// Makes the names in folders durable on this device (FUSE_FSYNCDIR).
  ///
  /// - Throws: `Failure`; what fsync(2) says.
  package func syncFolders(_ caller: Caller) throws(Failure) {
    guard let queue, !queue.isEmpty else { return }
    guard caller.lane > .fast else { throw .takesTime }
    do throws(Errno) {
      try queue.commit()
    } catch {
      throw Failure(
        error, "what was written is not safely on this device: \(error)", level: .error)
    }
  }

  /// Changes the pending bytes of a handle, which are made first where there are none.
  func change(
    _ handle: FileHandle, _ caller: Caller, _ body: (PendingFile) throws(Errno) -> Void
  ) throws(Failure) {
    // Again, when another handle has put other bytes in their place just now.
    for _ in 0..<8 {
      let file = try content(of: handle, caller)
      do throws(Errno) {
        return try body(file)
      } catch {
        if error == .again { throw .takesTime }
        if error == .badHandle, handle.body?.writable !== file { continue }
        throw Failure(
          error, "\(handle.object): cannot be written: \(error)", level: Self.level(error))
      }
    }
    throw Failure(.badHandle, "\(handle.object): is opened and closed too fast")
  }

  private func content(of handle: FileHandle, _ caller: Caller) throws(Failure) -> PendingFile {
    guard handle.isWriter, let body = handle.body else {
      throw Failure(.badHandle, "\(handle.object): is not open for writing")
    }
    if let file = body.writable { return file }
    guard caller.lane > .fast else { throw .takesTime }
    return try body.exclusively(caller) { () throws(Failure) in
      if let file = body.writable { return file }
      guard let source = body.unwritten ?? handle.file else {
        throw Failure(.stale, "\(handle.object): is not what was opened any more")
      }
      return try takeBytes(of: source, for: handle.inode, body, caller)
    }
  }

  /// Lets writers who have not written yet keep bytes of their own, before a name is taken from
  /// the file.
  func keepBytes(of object: ObjectName, _ caller: Caller) throws(Failure) {
    guard let (inode, node) = tree.withLock({ $0.node(of: .object(object)) }),
      let body = node.body, let source = body.unwritten
    else { return }
    _ = try takeBytes(of: source, for: inode, body, caller)
  }

  /// Makes a pending file of what an inode was opened with.
  private func takeBytes(
    of source: OpenFile, for inode: UInt64, _ body: FileBody, _ caller: Caller
  ) throws(Failure) -> PendingFile {
    let node = try node(inode)
    guard case .object(let object) = node.place, !node.isUnlinked else {
      throw Failure(.stale, "\(source.object): was removed before it was written to")
    }
    let queue = try writable("\(object)")
    let file: PendingFile
    if node.isDetached {
      // The store's has changed since: whose change wins is for the queue to find out.
      guard queue.entry(for: object) == nil else {
        throw Failure(.stale, "\(object): another file has taken its name")
      }
      file = try adopt(source, as: object, body, queue, caller)
      forgetName(of: node)
    } else if let found = try edit(object, queue, keepingBytes: true, caller) {
      file = found
    } else {
      file = try adopt(source, as: object, body, queue, caller)
    }
    let facts = FileFacts(pendingSize: file.size, file.modified)
    tree.withLock { $0.becomePending(inode, facts) }
    body.write(to: file)
    return file
  }

  private func adopt(
    _ source: OpenFile, as object: ObjectName, _ body: FileBody, _ queue: PendingQueue,
    _ caller: Caller
  ) throws(Failure) -> PendingFile {
    let info = source.info
    let line = ListingEntry(name: "", kind: .file, size: source.size, tag: info.tag)
    let kept = kept(of: .object(object), line)
    let new = NewFile(
      base: body.base ?? .object(version: info.version, tag: info.tag), mode: kept?.mode ?? 0o644,
      attributes: kept?.extended ?? [:])
    return try adopt(source, as: object, new, queue, caller)
  }

  /// Puts the bytes of an open object into the queue.
  func adopt(
    _ source: OpenFile, as object: ObjectName, _ new: NewFile, _ queue: PendingQueue,
    base: (() -> PendingBase)? = nil, _ caller: Caller
  ) throws(Failure) -> PendingFile {
    guard source.isCopy || caller.lane == .slow else { throw .mustWait }
    let descriptor: CInt?
    do throws(StoreError) {
      descriptor = try source.wholeDescriptor(caller.call)
    } catch {
      throw Failure(error, object.description)
    }
    if let descriptor {
      // What this device takes for copying is none of the store's silence.
      defer { caller.call.getsOn() }
      return try makePending(object) { () throws(Errno) in
        try queue.adopt(object, from: descriptor, size: source.size, new, base: base)
      }
    }
    let file = try makePending(object) { () throws(Errno) in
      try queue.create(object, new, base: base)
    }
    do throws(Failure) {
      try copy(source, to: file, object, caller)
    } catch {
      // Half of a file takes nobody's place.
      file.discard()
      throw error
    }
    return file
  }

  /// Copies what no file of the cache holds.
  private func copy(
    _ source: OpenFile, to file: PendingFile, _ object: ObjectName, _ caller: Caller
  ) throws(Failure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while offset < source.size {
      let count: Int
      do throws(StoreError) {
        count = try source.read(buffer, at: offset, caller.call)
      } catch {
        throw Failure(error, object.description)
      }
      guard count > 0 else { throw Failure(.io, "\(object): ended early", level: .error) }
      do throws(Errno) {
        try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
      } catch {
        throw Failure(error, "\(object): cannot be written: \(error)", level: Self.level(error))
      }
      offset += Int64(count)
      caller.call.getsOn()
    }
  }
}
