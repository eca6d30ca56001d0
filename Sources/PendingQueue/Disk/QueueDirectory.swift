import CLinux
import Glibc
import Platform

/// The queue's folder: `<id>.data` with bytes, `<id>.json` with a record, nothing else that counts.
///
/// Held by one program at a time. Names are made of ids alone, so nothing that a server or a person
/// names can leave it.
final class QueueDirectory: Sendable {
  /// Absolute.
  let path: String
  /// Hears of each change of the folder, in order; for tests.
  let journal = Locked<(@Sendable (FileOperation) -> Void)?>(nil)

  private let root: Directory
  private let lock: DirectoryLock

  static let aside: ByteString = "aside"

  /// Makes, checks and locks the folder `pending` of a profile's data folder.
  init(profile: String) throws(QueueError) {
    path = profile + "/pending"
    for folder in [profile, path] {
      do throws(FolderTrust.Failure) {
        try FolderTrust.prepare(folder, mark: "pending")
      } catch {
        switch error {
        case .unsafe(let path, let reason): throw .unsafe(path: path, reason: reason)
        case .system(let path, let doing, let error):
          throw .system(path: path, doing: doing, error)
        }
      }
    }
    do throws(Errno) {
      root = try Directory(path)
      try root.makeFolders(Self.aside)
    } catch {
      throw .system(path: path, doing: "open", error)
    }
    lock = try Self.lock(root, path)
  }

  /// Lets another program have the folder.
  func unlock() { lock.release() }

  func dataPath(_ id: PendingID) -> String { "\(path)/\(id).data" }

  // MARK: - Bytes

  /// Makes an empty data file.
  func createData(_ id: PendingID) throws(Errno) -> File {
    let file = try root.open(ByteString("\(id).data"), O_RDWR | O_CREAT | O_EXCL)
    note(.create("\(id).data"))
    CrashPoint.reach(.dataCreated)
    return file
  }

  func openData(_ id: PendingID, _ flags: CInt = O_RDWR) throws(Errno) -> File {
    try root.open(ByteString("\(id).data"), flags)
  }

  /// Removes a record's bytes; none are no error.
  func removeData(_ id: PendingID) throws(Errno) { try removeIfThere("\(id).data") }

  // MARK: - Records

  /// Replaces a record's file in one step.
  ///
  /// - Parameter durable: whether it survives a power cut once this returns; the bytes must be
  ///   durable already.
  func save(_ record: PendingRecord, durable: Bool) throws(Errno) {
    try replace("\(record.id).json", with: try record.encoded(), durable: durable)
  }

  /// Replaces a file of the folder in one step.
  func replace(_ name: String, with bytes: [UInt8], durable: Bool) throws(Errno) {
    let temporary = name + ".new"
    do throws(Errno) {
      let file = try root.open(ByteString(temporary), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW)
      note(.create(temporary))
      try bytes.withUnsafeBufferPointer { (buffer) throws(Errno) in
        try file.write(UnsafeRawBufferPointer(buffer), at: 0)
      }
      note(.write(temporary, at: 0, bytes))
      if durable {
        try file.sync()
        note(.syncFile(temporary))
      }
      CrashPoint.reach(.recordWritten)
      try rename(temporary, to: name)
    } catch {
      unlinkat(root.descriptor, temporary, 0)
      throw error
    }
    CrashPoint.reach(.recordReplaced)
    if durable { try syncFolder() }
  }

  /// Removes a record with its bytes; a crash in the middle is finished by the next start.
  func remove(_ id: PendingID) throws(Errno) {
    do throws(Errno) {
      try rename("\(id).json", to: "\(id).gone")
    } catch .noEntry {
      // It was never saved.
    }
    CrashPoint.reach(.removeMarked)
    try removeData(id)
    CrashPoint.reach(.removeDataGone)
    try removeIfThere("\(id).gone")
  }

  // MARK: - Durability

  /// Makes a file of the folder durable, by name.
  func sync(_ name: String) throws(Errno) {
    let file = try root.open(ByteString(name), O_RDONLY)
    try file.sync()
    note(.syncFile(name))
  }

  /// Makes an open data file durable.
  func sync(_ file: borrowing File, of id: PendingID) throws(Errno) {
    try file.sync()
    note(.syncFile("\(id).data"))
  }

  /// Makes the names in the folder durable.
  func syncFolder() throws(Errno) {
    try check { fsync(root.descriptor) }
    note(.syncFolder)
  }

  /// Makes everything on the folder's file system durable (syncfs(2)).
  func syncAll() throws(Errno) {
    try check { bucketfs_syncfs(root.descriptor) }
    note(.syncFolder)
  }

  // MARK: - Looking round

  func names() throws(Errno) -> [ByteString] { try root.names() }

  /// How many pending files were put aside, at this start or before.
  func asideCount() throws(Errno) -> Int {
    let stems = try root.names(in: Self.aside).compactMap { $0.split(at: UInt8(ascii: ".")).first }
    return Set(stems).count
  }

  /// The facts of a name, symlinks not followed; nil when there is none.
  func status(_ name: String) throws(Errno) -> stat? {
    var status = stat()
    do throws(Errno) {
      try check { fstatat(root.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) }
    } catch .noEntry {
      return nil
    }
    return status
  }

  /// The bytes of a record's file, of at most a megabyte.
  func contents(_ name: String) throws(Errno) -> [UInt8] {
    let file = try root.open(ByteString(name), O_RDONLY | O_NONBLOCK)
    return try file.readToEnd(limit: 1 << 20)
  }

  func removeIfThere(_ name: String) throws(Errno) {
    do throws(Errno) {
      try check { unlinkat(root.descriptor, name, 0) }
    } catch .noEntry {
      return
    }
    note(.remove(name))
  }

  /// Moves a file where nothing looks for it, and nothing deletes it.
  func putAside(_ name: String) throws(Errno) {
    try rename(name, to: "\(Self.aside)/\(name)")
  }

  func note(_ operation: @autoclosure () -> FileOperation) {
    guard let journal = journal.withLock({ $0 }) else { return }
    journal(operation())
  }

  private func rename(_ name: String, to other: String) throws(Errno) {
    try check { renameat(root.descriptor, name, root.descriptor, other) }
    note(.rename(name, to: other))
  }

  private static func lock(_ root: borrowing Directory, _ path: String) throws(QueueError)
    -> DirectoryLock
  {
    do throws(DirectoryLock.Failure) {
      return try DirectoryLock(root, at: path)
    } catch {
      switch error {
      case .held(let holder): throw .inUse(directory: path, pid: holder.pid)
      case .system(let error): throw .system(path: path, doing: "lock", error)
      }
    }
  }
}
