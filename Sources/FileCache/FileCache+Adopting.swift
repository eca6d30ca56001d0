package import BucketStore
import Glibc
import Platform
import SQLite

/// Taking over files that were made here and that the store has by now.
extension FileCache {
  /// Makes the copy of an object out of a file of this device, as if it had just been fetched.
  ///
  /// The file is renamed where it lies on the cache's own file system, else cloned or copied. By
  /// the time this returns the copy is served, also after a kill; who has an older version open
  /// keeps it. Waits for the disk, never for the network.
  /// - Parameters:
  ///   - path: absolute; nobody may change the file's bytes from here on.
  ///   - size: bytes of the file.
  ///   - info: what the store has just said of the object.
  /// - Returns: the number that `OpenFile.version` of the copy has; nil when none is kept, the log
  ///   says why, and then a copy of an older version is gone too.
  package func adopt(_ path: String, size: Int64, as object: ObjectName, _ info: ObjectInfo)
    -> UInt64?
  {
    let asked = Timestamp.now
    let parts = Directory.parts(of: ByteString(path))
    guard let folder = parts.parent.string else {
      drop(object)
      return nil
    }
    do throws(Errno) {
      let facts = ObjectFacts(
        size: size, tag: info.tag, version: info.version, modified: info.modified,
        contentType: info.contentType)
      guard info.size == nil || info.size == size else { throw .io }
      let isMD5 = Checksum.md5(of: facts.tag) != nil
      let stored = Stored(facts: facts, sha256: isMD5 ? nil : info.sha256, asked: asked)
      let source = try Directory(folder)
      do throws(Errno) {
        return try place(parts.name, in: source, as: object, stored)
      } catch .crossDevice {
        let file = try source.open(parts.name, O_RDONLY | O_NOFOLLOW)
        return try placeClone(of: file, as: object, stored)
      }
    } catch {
      Log.warning("no copy of \(object) is kept: cannot take the stored file over: \(error)")
      drop(object)
      return nil
    }
  }

  private func placeClone(
    of file: borrowing File, as object: ObjectName, _ stored: Stored
  ) throws(Errno) -> UInt64 {
    let content = state.withLock { $0.nextContent() }
    let clone = try PartFile.make(in: directory, content: content)
    do throws(Errno) {
      try clone.file.fill(from: file.descriptor, size: stored.facts.size)
      return try place(clone.path, in: directory.root, as: object, stored)
    } catch {
      discard(clone)
      throw error
    }
  }

  /// Renames on the writing thread, so that file and row have one order with all others.
  private func place(
    _ name: ByteString, in source: borrowing Directory, as object: ObjectName,
    _ stored: Stored
  ) throws(Errno) -> UInt64 {
    let folder = File(owning: try check { fcntl(source.descriptor, F_DUPFD_CLOEXEC, 0) })
    let source = Directory(owning: folder)
    let outcome = Locked<Outcome>(.open)
    database.enqueue { [self] (connection) throws(DatabaseError) in
      let copy: Copy
      let old: (path: ByteString?, partial: ByteString?)
      do throws(Errno) {
        (copy, old) = try take(name, in: source, as: object, stored)
      } catch {
        return outcome.withLock { $0 = .failed(error) }
      }
      // Served from here on: a row that cannot be written costs the copy at the next start, at
      // worst, and the file says itself which object it is.
      outcome.withLock { $0 = .placed(copy.content) }
      if let path = old.path, path != copy.path { remove(path) }
      if let path = old.partial { remove(path) }
      try CopyRows.save(copy, of: object, in: &connection)
      try PartialRows.remove(object, in: &connection)
    } done: { [self] error in
      if let error { report(error) }
      outcome.withLock { if case .open = $0 { $0 = .failed(.io) } }
      outcome.wakeAll()
      keeper.poke()
    }
    let ended = outcome.wait { outcome -> Outcome? in
      if case .open = outcome { nil } else { outcome }
    }
    switch ended {
    case .placed(let content): return content
    case .failed(let error): throw error
    case .open, nil: throw .io
    }
  }

  /// What the store has said of the file.
  private struct Stored: Sendable {
    let facts: ObjectFacts
    let sha256: String?
    let asked: Timestamp
  }

  private enum Outcome {
    case open
    case placed(UInt64)
    case failed(Errno)
  }

  private func take(
    _ name: ByteString, in source: borrowing Directory, as object: ObjectName,
    _ stored: Stored
  ) throws(Errno) -> (Copy, (path: ByteString?, partial: ByteString?)) {
    let file = try source.open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    guard try file.status().st_mode & S_IFMT == S_IFREG else { throw .io }
    let content = state.withLock { $0.nextContent() }
    var copy = try put(
      file, at: name, in: source, as: object, stored.facts, fetched: stored.asked,
      isVerified: Checksum(tag: stored.facts.tag, sha256: stored.sha256) != nil,
      sha256: stored.sha256, content: content)
    let (old, partial, downloads) = state.withLock { state in
      let downloads = [
        state.downloads.removeValue(forKey: object), state.questions.removeValue(forKey: object),
      ]
      copy.isPinned = state.copies[object]?.isPinned ?? false
      let old = state.copies.updateValue(copy, forKey: object)
      let partial = state.partials.removeValue(forKey: object)
      state.fresh.insert(object)
      state.touched.remove(object)
      state.bytes &+= stored.facts.size &- (old?.facts.size ?? 0) &- (partial?.present.count ?? 0)
      return (old, partial, downloads)
    }
    for download in downloads { download?.supersede() }
    return (copy, (old?.path, partial?.path))
  }
}
