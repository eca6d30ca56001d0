import Glibc
import Platform

/// The cache's folder on the device: checked, locked, and never left by what a server names.
///
/// `storage` and `storage-hashed` hold copies, `tmp` what is being downloaded. Held by one program
/// at a time.
final class CacheDirectory: Sendable {
  let path: String
  /// Tells whose copies are kept here; copies of others are none.
  let owner: String
  /// Every path below goes through this one, with RESOLVE_BENEATH and without symlinks.
  let root: Directory
  /// Why nothing new can be kept, as far as that showed at start: no room, or a read-only disk.
  let refusal: Errno?
  /// nil where there is no folder to be locked.
  private let lock: DirectoryLock?
  private let repair = Locked(Repair())

  private struct Repair {
    var isUnderWay = false
    /// Why the folder cannot be put back in place, as it was found last.
    var obstacle: CacheError?
  }

  static let storage: ByteString = "storage"
  static let hashed: ByteString = "storage-hashed"
  static let temporary: ByteString = "tmp"

  /// Makes, checks and locks the folder.
  ///
  /// Where there is no room for it, or the disk can only be read, what is there is used all the
  /// same, and nothing is kept: a cache must not stand in the way of what it speeds up.
  /// - Parameter identity: whose copies are kept here.
  init(_ path: String, mountPoint: String, identity: String) throws(CacheError) {
    self.path = path
    owner = String(Digest.hex(.sha256, of: Array(identity.utf8)).prefix(32))
    let missing = try Self.prepare(path)
    root = try Self.open(path, missing)
    lock = missing == nil ? try Self.lock(root, path, mountPoint) : nil
    refusal = missing == nil ? try Self.fill(root, path) : missing
  }

  /// - Returns: why there can be no folder; nil where there is one.
  private static func prepare(_ path: String) throws(CacheError) -> Errno? {
    do throws(FolderTrust.Failure) {
      try FolderTrust.prepare(path, mark: "CACHEDIR.TAG")
      return nil
    } catch {
      switch error {
      case .unsafe(let path, let reason): throw .unsafe(path: path, reason: reason)
      case .system(_, _, let error) where error.isNoPlace: return error
      case .system(let path, let doing, let error):
        throw .system(path: path, doing: doing, error)
      }
    }
  }

  private static func open(_ path: String, _ missing: Errno?) throws(CacheError) -> Directory {
    if let missing { return Directory(refusing: missing) }
    do throws(Errno) {
      return try Directory(path)
    } catch {
      throw .system(path: path, doing: "open", error)
    }
  }

  /// Makes what belongs in the folder.
  ///
  /// - Returns: why nothing can be written in it; nil where it can.
  private static func fill(_ root: borrowing Directory, _ path: String) throws(CacheError)
    -> Errno?
  {
    do throws(Errno) {
      for folder in [storage, hashed, temporary] {
        try root.makeFolders(folder)
        let made = try root.open(folder, O_RDONLY | O_DIRECTORY)
        try check { fchmod(made.descriptor, 0o700) }
      }
      let tag = try root.open("CACHEDIR.TAG", O_WRONLY | O_CREAT)
      try Array(tagText.utf8).withUnsafeBufferPointer { (text) throws(Errno) in
        try tag.write(UnsafeRawBufferPointer(text), at: 0)
      }
      return nil
    } catch {
      if error.isNoPlace { return error }
      throw .system(path: path, doing: "make the folders of", error)
    }
  }

  /// Makes again what belongs in the folder, and the folder itself, where somebody has removed it.
  ///
  /// One thread at a time is at it; the others wait, which is for this device alone.
  /// - Returns: whether something was missing and is there again.
  @discardableResult
  func restore() -> Bool {
    guard refusal == nil, let lock else { return false }
    if isWhole {
      repair.withLock { $0.obstacle = nil }
      return false
    }
    _ = repair.wait { repair -> Bool? in
      if repair.isUnderWay { return nil }
      repair.isUnderWay = true
      return true
    }
    defer { repair.wakeAll() }
    // The one before may have done it.
    if isWhole {
      repair.withLock { $0.isUnderWay = false }
      return true
    }
    var obstacle: CacheError?
    do throws(CacheError) {
      if !isInPlace { try settle(lock) }
      if let error = try Self.fill(root, path) {
        throw .system(path: path, doing: "make the folders of", error)
      }
      lock.sign(root)
      Log.info("\(path) was cleared, and is filled again")
    } catch {
      obstacle = error
    }
    let isNew = repair.withLock { repair -> Bool in
      defer { repair = Repair(isUnderWay: false, obstacle: obstacle) }
      return repair.obstacle != obstacle
    }
    if let obstacle, isNew { Log.warning("nothing more is kept: \(obstacle)") }
    return obstacle == nil
  }

  /// Why what was removed cannot be made again; nil while it can.
  var obstacle: CacheError? { repair.withLock { $0.obstacle } }

  private var isWhole: Bool {
    isInPlace
      && [Self.storage, Self.hashed, Self.temporary, "CACHEDIR.TAG"].allSatisfy {
        access("\(path)/\($0)", F_OK) == 0
      }
  }

  /// Moves into the folder that is at the path now, or is made there.
  private func settle(_ lock: DirectoryLock) throws(CacheError) {
    if let missing = try Self.prepare(path) {
      throw .system(path: path, doing: "make", missing)
    }
    let folder = try Self.open(path, nil)
    do throws(DirectoryLock.Failure) {
      try lock.move(to: folder, at: path)
    } catch {
      throw Self.error(error, path)
    }
    do throws(Errno) {
      try root.lead(to: folder)
    } catch {
      throw .system(path: path, doing: "open", error)
    }
  }

  /// Lets another program have the folder.
  func unlock() { lock?.release() }

  /// Whether the path still leads to this folder, and not to another one, or nowhere.
  var isInPlace: Bool { lock?.isHeld(at: path) ?? false }

  /// Whether a file of a mebibyte can be written.
  var hasRoom: Bool {
    let name = Self.temporary + "/room"
    do throws(Errno) {
      let file = try root.open(name, O_WRONLY | O_CREAT)
      let descriptor = file.descriptor
      let code = posix_fallocate(descriptor, 0, 1 << 20)
      try root.remove(name)
      return code == 0
    } catch {
      return false
    }
  }

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
      throw Self.error(error, path)
    }
  }

  private static func error(_ failure: DirectoryLock.Failure, _ path: String) -> CacheError {
    switch failure {
    case .held(let holder): .inUse(directory: path, pid: holder.pid, mountPoint: holder.note)
    case .system(let error): .system(path: path, doing: "lock", error)
    }
  }
}
