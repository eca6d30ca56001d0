import BucketStore
import Glibc
import Platform

/// Finds copies by their files, for when the index does not know them.
struct CopyFinder {
  private let directory: CacheDirectory

  init(_ directory: CacheDirectory) {
    self.directory = directory
  }

  /// Every file that may be a copy, relative to the cache's folder.
  func files() -> [ByteString] {
    var found: [ByteString] = []
    for folder in [CacheDirectory.storage, CacheDirectory.hashed] {
      walk(folder) { found.append($0) }
    }
    return found
  }

  /// Removes every copy, and everything in `tmp`.
  func removeAll() {
    for folder in [CacheDirectory.storage, CacheDirectory.hashed, CacheDirectory.temporary] {
      walk(folder, isEmptying: true, remove)
    }
  }

  /// The copy that a file says it is; nil when that cannot be so, or nothing can ever show it.
  ///
  /// A file is listened to when it says whose it is and of which object, lies where that object belongs, has the
  /// size it says, and names a checksum. Its bytes are compared with that when it is first opened:
  /// `stamp` is one that no file has.
  func identify(_ path: ByteString) -> (ObjectName, Copy)? {
    do throws(Errno) {
      let file = try directory.root.open(path, O_RDONLY | O_NONBLOCK)
      let status = try file.status()
      guard status.st_mode & S_IFMT == S_IFREG else { return nil }
      let stamp = FileStamp(status)
      let attribute = try file.attribute(CopyIdentity.attribute)
      guard let identity = CopyIdentity(encoded: attribute),
        identity.owner == directory.owner, identity.facts.size == stamp.size,
        path == CopyPath.plain(identity.object) || path == CopyPath.hashed(identity.object)
      else { return nil }
      let copy = Copy(
        path: path, stamp: stamp.unproven, facts: identity.facts, sha256: identity.sha256,
        fetched: identity.fetched, confirmed: identity.fetched, used: identity.fetched,
        isVerified: identity.isVerified, content: 0)
      return copy.checksum == nil ? nil : (identity.object, copy)
    } catch {
      // Whatever the reason, the file cannot show what it is.
      return nil
    }
  }

  /// What a file is told apart by; nil when it cannot be opened.
  func stamp(of path: ByteString) -> FileStamp? {
    do throws(Errno) {
      return FileStamp(try directory.root.open(path, O_RDONLY | O_NONBLOCK).status())
    } catch {
      return nil
    }
  }

  /// Removes a file that is no copy.
  func remove(_ path: ByteString) {
    do throws(Errno) {
      try directory.root.remove(path)
    } catch {
      Log.warning("cannot remove \(directory.path)/\(path): \(error)")
    }
  }

  /// Calls `body` with each file below a folder.
  ///
  /// - Parameter isEmptying: removes folders that are left empty; only while nobody else is at
  ///   work here, since a copy may be on its way into one.
  private func walk(
    _ folder: ByteString, isEmptying: Bool = false, _ body: (ByteString) -> Void
  ) {
    do throws(Errno) {
      for name in try directory.root.names(in: folder) {
        let path = folder + "/" + name
        if isFolder(path) {
          walk(path, isEmptying: isEmptying, body)
          if isEmptying { removeFolder(path) }
        } else {
          body(path)
        }
      }
    } catch {
      Log.warning("cannot look through \(directory.path)/\(folder): \(error)")
    }
  }

  private func removeFolder(_ path: ByteString) {
    do throws(Errno) {
      try directory.root.removeFolder(path)
    } catch {
      // What holds something still could not be emptied, and that was told.
      guard error != .notEmpty, error != .exists, error != .noEntry else { return }
      Log.warning("cannot remove \(directory.path)/\(path): \(error)")
    }
  }

  private func isFolder(_ path: ByteString) -> Bool {
    do throws(Errno) {
      _ = try directory.root.open(path, O_RDONLY | O_DIRECTORY)
      return true
    } catch {
      return false
    }
  }
}
