import BucketStore
import FileCache
import Glibc
package import Platform
import PendingQueue

/// New names: their rules, and what they begin as.
extension FileSystem {
  /// Makes a file and opens it (FUSE_CREATE); one that somebody else has made first is opened.
  ///
  /// - Parameters:
  ///   - mode: permission bits.
  ///   - flags: those of open(2).
  /// - Returns: the entry, counted as one more answer that names it, and the open file.
  /// - Throws: `Failure`; EEXIST with O_EXCL, EINVAL, EILSEQ and ENAMETOOLONG for names that cannot
  ///   be, EPERM beside the buckets, EROFS, ENOSPC, or the store's failure when nothing that is kept
  ///   tells whether the name is taken.
  package func create(
    _ name: ByteString, in parent: UInt64, mode: UInt32, flags: CInt, _ caller: Caller
  ) throws(Failure) -> (entry: Entry, handle: FileHandle) {
    let queue = try writable("\(name)")
    let folder = try folder(parent)
    let object = try newObject(name, in: folder, queue)
    let (found, _) = try find(name, in: folder, caller)
    if let found {
      guard flags & O_EXCL == 0 else { throw Failure(.exists, "\(object): is there already") }
      guard !found.isFolder else { throw Failure(.isDirectory, "\(object): is a folder") }
      let entry = reference(found, at: .object(object), parent: parent, believed: .zero)
      do throws(Failure) {
        return (entry, try open(entry.inode, flags: flags, caller))
      } catch {
        forget(entry.inode, count: 1)
        throw error
      }
    }
    try touch(folder, caller)
    let new = NewFile(base: .absent, mode: mode & 0o777)
    let file = try makePending(object) { () throws(Errno) in
      try queue.create(object, new, mayWait: caller.mayWait)
    }
    guard let pending = queue.entry(for: object) else {
      file.close()
      throw Failure(.io, "\(object): was removed while it was made", level: .error)
    }
    let entry = reference(
      TreeEntry(pending, name: name), at: .object(object), parent: parent,
      believed: listings.options.maxAge)
    do throws(Failure) {
      return (entry, try handle(file, entry.inode, object, isWriter: true))
    } catch {
      forget(entry.inode, count: 1)
      throw error
    }
  }

  /// Makes a folder (FUSE_MKDIR): the empty object that keeps it, to be sent like any file.
  ///
  /// - Returns: the entry, counted as one more answer that names it.
  /// - Throws: `Failure`, as `create`; EPERM for a bucket.
  package func makeFolder(
    _ name: ByteString, in parent: UInt64, mode: UInt32, _ caller: Caller
  ) throws(Failure) -> Entry {
    guard caller.lane > .fast else { throw .takesTime }
    let queue = try writable("\(name)")
    let folder = try folder(parent)
    let segment = try newSegment(name, in: folder, queue, isFolder: true)
    let inner = folder.folder(segment)
    if try find(name, in: folder, caller).entry != nil {
      throw Failure(.exists, "\(inner): is there already")
    }
    try touch(folder, caller)
    try keepFolder(inner, queue)
    // The store has nothing of it, so nothing has to be asked about what is made in it.
    if !listings.isKept(inner) { listings.plant(inner) }
    if mode & 0o777 != 0o755 {
      set(of: .folder(inner)) { $0.mode = mode & 0o777 }
    }
    return reference(
      pendingFolder(inner, name: name, in: folder), at: .folder(inner), parent: parent,
      believed: listings.options.maxAge)
  }

  /// Puts the empty object that keeps a folder into the queue.
  func keepFolder(_ folder: FolderName, _ queue: PendingQueue) throws(Failure) {
    let object = marker(of: folder)
    let new = NewFile(base: .absent, mode: 0o644)
    let file = try makePending(object) { () throws(Errno) in try queue.create(object, new) }
    defer { file.close() }
    do throws(Errno) {
      try changing(object) { () throws(Errno) in try file.flush() }
    } catch {
      throw Failure(error, "\(folder): cannot be made: \(error)", level: .warning)
    }
  }

  // MARK: - Parts

  /// Where changes go to.
  ///
  /// - Throws: `Failure`; EROFS.
  func writable(_ subject: @autoclosure () -> String) throws(Failure) -> PendingQueue {
    guard let queue, !isReadOnly else {
      throw Failure(.readOnly, "\(subject()): the mount is read-only")
    }
    return queue
  }

  /// The object that a new file's name stands for.
  func newObject(_ name: ByteString, in folder: FolderName, _ queue: PendingQueue) throws(Failure)
    -> ObjectName
  {
    folder.object(try newSegment(name, in: folder, queue, isFolder: false))
  }

  private func newSegment(
    _ name: ByteString, in folder: FolderName, _ queue: PendingQueue, isFolder: Bool
  ) throws(Failure) -> ByteString {
    guard name.count <= KeyNames.longestName else {
      throw Failure(.nameTooLong, "\(folder)\(name): name is too long")
    }
    guard KeyNames.isName(name), !listings.options.names.isMarker(name) else {
      throw Failure(.invalid, "\(folder)\(name): no file can have this name")
    }
    guard let segment = listings.options.names.segment(of: name),
      listings.options.names.name(of: segment) == name
    else {
      throw Failure(.illegalSequence, "\(folder)\(name): the store can hold no such name")
    }
    guard !folder.isBuckets else {
      throw Failure(.notPermitted, "\(name): a mount makes no buckets, nor files beside them")
    }
    let key = isFolder ? marker(of: folder.folder(segment)).key : folder.object(segment).key
    guard queue.store.allows(key) else {
      // All its bytes are such as the store takes, so it is too long with what is above it.
      throw Failure(.nameTooLong, "\(folder)\(name): the store takes no key as long as this one")
    }
    return segment
  }

  func makePending(
    _ object: ObjectName, _ body: () throws(Errno) -> PendingFile
  ) throws(Failure) -> PendingFile {
    do throws(Errno) {
      return try changing(object, body)
    } catch .again {
      throw .takesTime
    } catch {
      throw Failure(error, "\(object): cannot be written: \(error)", level: Self.level(error))
    }
  }

  /// How loud a failure of this device is told.
  static func level(_ error: Errno) -> Log.Level {
    switch error {
    case .noSpace, .noEntry, .noAttribute, .notSupported, .invalid, .fileTooLarge: .info
    default: .error
    }
  }

  /// Makes a handle of a pending file that is open.
  func handle(
    _ file: PendingFile, _ inode: UInt64, _ object: ObjectName, isWriter: Bool
  ) throws(Failure) -> FileHandle {
    let facts = FileFacts(pendingSize: file.size, file.modified)
    let body = tree.withLock { tree -> FileBody? in
      let body = tree.open(inode, pending: facts)
      if body != nil, isWriter { tree.becomePending(inode, facts) }
      return body
    }
    guard let body else {
      file.close()
      throw Failure(.noEntry, "inode \(inode) is not known")
    }
    if isWriter { body.write(to: file, addingWriter: true) } else { body.read(from: file) }
    return FileHandle(
      inode: inode, object: object, file: nil, body: body, isWriter: isWriter,
      isCounted: isWriter, keepsCache: false,
      onClose: { [self] in closed(inode) })
  }

  /// Notes that a name in a folder comes or goes: a time that was set of the folder is over.
  func touch(_ folder: FolderName, _ caller: Caller) throws(Failure) {
    guard let kept = kept(of: .folder(folder), nil), kept.modified != nil else { return }
    guard caller.lane > .fast else { throw .takesTime }
    set(of: .folder(folder)) { $0.modified = .now }
  }

  /// Changes what is kept of a file or folder.
  func set(of place: Place, _ line: ListingEntry? = nil, _ change: (inout KeptAttributes) -> Void) {
    let (folder, name) = place.line
    var kept = kept(of: place, line) ?? KeptAttributes(tag: line?.tag, size: line?.size)
    change(&kept)
    keptAttributes.set(kept, of: name, in: folder)
  }
}
