import BucketStore
import Glibc
import Platform
import SQLite

/// Putting copies in place and removing them: all of it on the database's writing thread.
extension FileCache {
  /// Makes a copy out of a download that is whole and right: rename, then row.
  ///
  /// - Parameter isNewContent: whether readers of this download saw other bytes than these.
  func publish(
    _ download: Download, _ file: PartFile, _ facts: ObjectFacts, isVerified: Bool,
    sha256: String?, isNewContent: Bool
  ) {
    database.enqueue { [self] (connection) throws(DatabaseError) in
      try place(
        download, file, facts, isVerified: isVerified, sha256: sha256,
        isNewContent: isNewContent, &connection)
    } done: { [self] error in
      if let error { report(error) }
      download.markSettled()
      keeper.poke()
    }
  }

  private func place(
    _ download: Download, _ file: PartFile, _ facts: ObjectFacts, isVerified: Bool,
    sha256: String?, isNewContent: Bool, _ connection: inout Connection
  ) throws(DatabaseError) {
    let object = download.object
    guard state.withLock({ $0.downloads[object] === download }) else { return discard(file) }
    guard var copy = move(file, facts, of: download, isVerified: isVerified, sha256: sha256)
    else {
      discard(file)
      state.withLock { state in
        if state.downloads[object] === download { state.downloads[object] = nil }
      }
      return
    }
    note(nil)
    copy.confirmed = download.state.withLock { $0.confirmed }
    let outcome = state.withLock { state -> (isCurrent: Bool, old: Copy?, partial: Partial?) in
      guard state.downloads[object] === download else { return (false, nil, nil) }
      state.downloads[object] = nil
      if isNewContent { copy.content = state.nextContent() }
      let old = state.copies.updateValue(copy, forKey: object)
      let partial = state.partials.removeValue(forKey: object)
      state.fresh.insert(object)
      state.bytes &+= copy.facts.size &- (old?.facts.size ?? 0) &- (partial?.present.count ?? 0)
      return (true, old, partial)
    }
    guard outcome.isCurrent else { return remove(copy.path) }
    if let old = outcome.old, old.path != copy.path { remove(old.path) }
    if let partial = outcome.partial, partial.path != file.path { remove(partial.path) }
    try CopyRows.save(copy, of: object, in: &connection)
    try PartialRows.remove(object, in: &connection)
  }

  private func move(
    _ file: PartFile, _ facts: ObjectFacts, of download: Download, isVerified: Bool,
    sha256: String?
  ) -> Copy? {
    let object = download.object
    let fetched = download.state.withLock { $0.fetched }
    do throws(Errno) {
      return try put(
        file.file, at: file.path, in: directory.root, as: object, facts, fetched: fetched,
        isVerified: isVerified, sha256: sha256, content: download.content)
    } catch {
      if error == .noEntry {
        // Somebody has cleared the folder since it began; the next download finds it in place.
        Log.info("no copy of \(object) is kept: its bytes were removed")
      } else {
        Log.warning("no copy of \(object) is kept: cannot put it in place: \(error)")
        note(error)
      }
      return nil
    }
  }

  /// Renames a whole file to where its object belongs.
  ///
  /// A key whose place is taken by a folder, or lies below what is a file, goes to its hash.
  /// - Parameters:
  ///   - path: of the open file, relative to `source`.
  ///   - sha256: of the bytes, where the tag is not their MD5.
  ///   - content: names its bytes within this run of the program.
  func put(
    _ file: borrowing File, at path: ByteString, in source: borrowing Directory,
    as object: ObjectName, _ facts: ObjectFacts, fetched: Timestamp, isVerified: Bool,
    sha256: String?, content: UInt64
  ) throws(Errno) -> Copy {
    guard try FileStamp(file.status()).size == facts.size else { throw .io }
    identify(
      file,
      CopyIdentity(
        owner: directory.owner, object: object, facts: facts, fetched: fetched,
        isVerified: isVerified, sha256: sha256))
    var target = CopyPath.plain(object) ?? CopyPath.hashed(object)
    do throws(Errno) {
      try moveFile(path, in: source, to: target)
    } catch {
      guard error != .crossDevice else { throw error }
      target = CopyPath.hashed(object)
      try moveFile(path, in: source, to: target)
    }
    // Last, since mark and name count as changes too.
    return Copy(
      path: target, stamp: FileStamp(try file.status()), facts: facts, sha256: sha256,
      fetched: fetched, confirmed: fetched, used: .now, isVerified: isVerified, content: content)
  }

  private func identify(_ file: borrowing File, _ identity: CopyIdentity) {
    do throws(Errno) {
      try file.setAttribute(CopyIdentity.attribute, identity.encoded)
    } catch {
      // Without it the copy is lost with the index, and only then.
      Log.debug("\(identity.object): cannot mark the copy: \(error)")
    }
  }

  private func moveFile(
    _ path: ByteString, in source: borrowing Directory, to target: ByteString
  ) throws(Errno) {
    if let cut = target.bytes.lastIndex(of: ByteString.slash) {
      let folder = ByteString(target.bytes[..<cut])
      do throws(Errno) {
        try directory.root.makeFolders(folder)
      } catch .noEntry {
        directory.restore()
        try directory.root.makeFolders(folder)
      }
    }
    try directory.root.take(path, from: source, as: target)
  }

  /// Forgets a copy that is not what it was, is not wanted, or has to make room.
  ///
  /// - Returns: whether it was still the one in the index.
  @discardableResult
  func forget(_ object: ObjectName, _ copy: Copy) -> Bool {
    let isCurrent = state.withLock { state -> Bool in
      guard state.copies[object]?.content == copy.content else { return false }
      state.copies[object] = nil
      state.touched.remove(object)
      state.fresh.remove(object)
      state.bytes &-= copy.facts.size
      return true
    }
    if isCurrent { clear(object, copy.path) }
    return isCurrent
  }

  /// Puts a copy that was found by its file into the index.
  ///
  /// - Parameter old: the copy whose place it takes; it must still be the one in the index.
  func takeUp(_ found: Copy, of object: ObjectName, for old: Copy?) {
    let copy = state.withLock { state -> Copy? in
      guard state.copies[object]?.content == old?.content else { return nil }
      var copy = found
      copy.content = state.nextContent()
      state.copies[object] = copy
      state.fresh.insert(object)
      state.bytes &+= copy.facts.size &- (old?.facts.size ?? 0)
      return copy
    }
    guard let copy else { return }
    database.enqueue { (connection) throws(DatabaseError) in
      try CopyRows.save(copy, of: object, in: &connection)
    } done: { [self] error in
      if let error { report(error) }
    }
  }

  /// Forgets what is kept of a large object.
  func forget(_ object: ObjectName, _ partial: Partial) {
    let isCurrent = state.withLock { state -> Bool in
      guard state.partials[object]?.path == partial.path else { return false }
      state.partials[object] = nil
      state.bytes &-= partial.present.count
      return true
    }
    guard isCurrent else { return }
    database.enqueue { [self] (connection) throws(DatabaseError) in
      let isFree = state.withLock { state in
        state.partials[object] == nil && state.downloads[object] == nil
      }
      remove(partial.path)
      if isFree { try PartialRows.remove(object, in: &connection) }
    } done: { [self] error in
      if let error { report(error) }
    }
  }

  /// Removes a copy's file and row, unless another copy has taken its place meanwhile.
  private func clear(_ object: ObjectName, _ path: ByteString) {
    database.enqueue { [self] (connection) throws(DatabaseError) in
      let current = state.withLock { $0.copies[object] }
      if current?.path != path { remove(path) }
      if current == nil { try CopyRows.remove(object, in: &connection) }
    } done: { [self] error in
      if let error { report(error) }
    }
  }

  /// Removes a file, and the folders above it that it leaves empty.
  ///
  /// On the database's writing thread alone.
  func remove(_ path: ByteString) {
    do throws(Errno) {
      try directory.root.remove(path)
    } catch {
      if error != .noEntry, error != .notDirectory {
        Log.warning("cannot remove \(directory.path)/\(path): \(error)")
      }
    }
    var segments = path.split(at: ByteString.slash).dropLast()
    while segments.count > 1 {
      let folder = ByteString(segments.map(\.bytes).joined(separator: [ByteString.slash]))
      do throws(Errno) {
        try directory.root.removeFolder(folder)
      } catch {
        // It holds something else still.
        return
      }
      segments = segments.dropLast()
    }
  }

  /// Removes a temporary file that becomes no copy.
  func discard(_ file: PartFile) {
    do throws(Errno) {
      try directory.root.remove(file.path)
    } catch {
      if error != .noEntry {
        Log.warning("cannot remove \(directory.path)/\(file.path): \(error)")
      }
    }
  }

  /// Lets go of a download that nobody has open; its parts stay when they are of use.
  func retire(_ download: Download, keeping partial: Partial?, of file: PartFile?) {
    let object = download.object
    let isKept = state.withLock { state -> Bool in
      guard state.downloads[object] === download else { return false }
      state.downloads[object] = nil
      guard let partial else { return false }
      let old = state.partials.updateValue(partial, forKey: object)
      state.bytes &+= partial.present.count &- (old?.present.count ?? 0)
      return true
    }
    if isKept, let partial {
      save(partial, of: object)
      keeper.poke()
    } else if let file {
      discard(file)
      database.enqueue { [self] (connection) throws(DatabaseError) in
        let isFree = state.withLock { $0.partials[object] == nil && $0.downloads[object] == nil }
        if isFree { try PartialRows.remove(object, in: &connection) }
      } done: { [self] error in
        if let error { report(error) }
      }
    }
  }

  func save(_ partial: Partial, of object: ObjectName) {
    database.enqueue { (connection) throws(DatabaseError) in
      try PartialRows.save(partial, of: object, in: &connection)
    } done: { [self] error in
      if let error { report(error) }
    }
  }

  /// Logs a failure of the index. Damage is mended where it shows itself.
  func report(_ error: DatabaseError) {
    Log.warning("the cache's index: \(error)")
  }
}
