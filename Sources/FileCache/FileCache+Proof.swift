import BucketStore
import Glibc
import Platform
import SQLite

/// Opening the files of copies, and making sure that they hold what was put there.
///
/// A file that nobody has touched since is believed by its stamp. One that somebody did touch (a
/// backup that was played back, another mode, an edit) is compared with its checksum once.
extension FileCache {
  /// Opens a copy's file; a copy whose file is gone or holds other bytes is forgotten.
  ///
  /// - Parameter repairing: whether bytes may be compared, which takes as long as reading them, and
  ///   the index be changed; without it a file that somebody touched is not opened.
  func open(_ object: ObjectName, _ copy: Copy, repairing: Bool = true) -> OpenFile? {
    guard let file = openFile(object, copy, repairing: repairing) else { return nil }
    state.withLock { state in
      if state.copies[object]?.content == copy.content {
        state.copies[object]?.used = .now
        state.touched.insert(object)
      }
      state.opens[object, default: 0] += 1
    }
    return OpenFile(object, copy, KeptFile(file), in: self)
  }

  func openFile(_ object: ObjectName, _ copy: Copy, repairing: Bool = true) -> File? {
    do throws(Errno) {
      let file = try directory.root.open(copy.path, O_RDONLY | O_NONBLOCK)
      let status = try file.status()
      let stamp = FileStamp(status)
      let isRegular = status.st_mode & S_IFMT == S_IFREG
      if isRegular, stamp == copy.stamp { return file }
      guard repairing else { return nil }
      if isRegular, try holdsBytes(of: copy, file, stamp) {
        restamp(object, copy, stamp)
        return file
      }
      takeUpOrForget(object, copy)
      return nil
    } catch {
      if error.showsThatItIsGone {
        if repairing { forget(object, copy) }
      } else {
        Log.warning("cannot open the copy of \(object): \(error)")
      }
      return nil
    }
  }

  /// Whether the file of a copy is there, and may be what was put there. Quick: compares no bytes.
  func isThere(_ object: ObjectName, _ copy: Copy) -> Bool {
    do throws(Errno) {
      let status = try directory.root.open(copy.path, O_RDONLY | O_NONBLOCK).status()
      let stamp = FileStamp(status)
      guard status.st_mode & S_IFMT == S_IFREG else { return false }
      return stamp == copy.stamp || (stamp.size == copy.stamp.size && copy.checksum != nil)
    } catch {
      return false
    }
  }

  private func holdsBytes(of copy: Copy, _ file: borrowing File, _ stamp: FileStamp)
    throws(Errno) -> Bool
  {
    guard stamp.size == copy.facts.size, let checksum = copy.checksum else { return false }
    guard try file.digest(checksum.algorithm, size: stamp.size) == checksum.digest else {
      return false
    }
    return FileStamp(try file.status()) == stamp
  }

  private func restamp(_ object: ObjectName, _ copy: Copy, _ stamp: FileStamp) {
    let current = state.withLock { state -> Copy? in
      guard state.copies[object]?.content == copy.content else { return nil }
      state.copies[object]?.stamp = stamp
      return state.copies[object]
    }
    guard let current else { return }
    database.enqueue { (connection) throws(DatabaseError) in
      try CopyRows.save(current, of: object, in: &connection)
    } done: { [self] error in
      if let error { report(error) }
    }
  }

  /// A file that is not what its row says is a newer copy whose row a crash kept back, or not one
  /// of ours at all.
  private func takeUpOrForget(_ object: ObjectName, _ copy: Copy) {
    let found = CopyFinder(directory).identify(copy.path)
    guard let found, found.0 == object, found.1.facts != copy.facts else {
      Log.warning("\(object): the copy was changed behind the program's back")
      forget(object, copy)
      return
    }
    takeUp(found.1, of: object, for: copy)
  }
}

extension Errno {
  /// Whether a file that cannot be opened is gone, or something else is in its place; other
  /// failures pass.
  var showsThatItIsGone: Bool {
    switch self {
    case .noEntry, .notDirectory, .isDirectory, .loop, .crossDevice: true
    default: false
    }
  }
}

/// An open file of a copy. It keeps its bytes when the copy is replaced or removed.
final class KeptFile: Sendable {
  let file: File

  init(_ file: consuming File) {
    self.file = file
  }
}
