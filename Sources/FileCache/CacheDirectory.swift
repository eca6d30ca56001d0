import Glibc
import Platform

/// The cache's folder on the device: checked, locked, and never left by what a server names.
///
/// `storage` and `storage-hashed` hold copies, `tmp` what is being downloaded. Held by one program
/// at a time.
final class CacheDirectory: Sendable {
  let path: String
  /// Every path below goes through this one, with RESOLVE_BENEATH and without symlinks.
  let root: Directory
  private let lock: DirectoryLock

  static let storage: ByteString = "storage"
  static let hashed: ByteString = "storage-hashed"
  static let temporary: ByteString = "tmp"

  /// Makes, checks and locks the folder.
  init(_ path: String, mountPoint: String) throws(CacheError) {
    do throws(FolderTrust.Failure) {
      try FolderTrust.prepare(path, mark: "CACHEDIR.TAG")
    } catch {
      switch error {
      case .unsafe(let path, let reason): throw .unsafe(path: path, reason: reason)
      case .system(let path, let doing, let error):
        throw .system(path: path, doing: doing, error)
      }
    }
    self.path = path
    do throws(Errno) {
      root = try Directory(path)
    } catch {
      throw .system(path: path, doing: "open", error)
    }
    lock = try Self.lock(root, path, mountPoint)
    do throws(Errno) {
      for folder in [Self.storage, Self.hashed, Self.temporary] {
        try root.makeFolders(folder)
        let made = try root.open(folder, O_RDONLY | O_DIRECTORY)
        try check { fchmod(made.descriptor, 0o700) }
      }
      let tag = try root.open("CACHEDIR.TAG", O_WRONLY | O_CREAT)
      try Array(Self.tagText.utf8).withUnsafeBufferPointer { (text) throws(Errno) in
        try tag.write(UnsafeRawBufferPointer(text), at: 0)
      }
    } catch {
      throw .system(path: path, doing: "make the folders of", error)
    }
  }

  /// Lets another program have the folder.
  func unlock() { lock.release() }

  /// Whether the path still leads to this folder, and not to another one, or nowhere.
  var isInPlace: Bool { lock.isHeld(at: path) }

  /// Removes what an earlier program left in `tmp`, once it is older than a day.
  func removeLeftovers(except kept: Set<ByteString>, olderThan age: Span = .seconds(86_400)) {
    do throws(Errno) {
      for name in try root.names(in: Self.temporary) {
        let path = Self.temporary + "/" + name
        if !kept.contains(path) { removeLeftover(path, olderThan: age) }
      }
    } catch {
      Log.warning("cannot look through \(self.path)/tmp: \(error)")
    }
  }

  private func removeLeftover(_ path: ByteString, olderThan age: Span) {
    do throws(Errno) {
      let modified = try root.open(path, O_RDONLY | O_NONBLOCK).status().st_mtim
      let time = Timestamp(seconds: Int64(modified.tv_sec), nanoseconds: Int64(modified.tv_nsec))
      if Timestamp.now.since(time) > age { try root.remove(path) }
    } catch {
      Log.warning("cannot clean up \(self.path)/\(path): \(error)")
    }
  }

  /// https://bford.info/cachedir/: backups pass over a folder with such a file.
  private static let tagText =
    "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache made by bucketfs.\n"

  private static func lock(_ root: borrowing Directory, _ path: String, _ mountPoint: String)
    throws(CacheError) -> DirectoryLock
  {
    do throws(DirectoryLock.Failure) {
      return try DirectoryLock(root, at: path, note: mountPoint)
    } catch {
      switch error {
      case .held(let holder):
        throw .inUse(directory: path, pid: holder.pid, mountPoint: holder.note)
      case .system(let error): throw .system(path: path, doing: "lock", error)
      }
    }
  }
}
