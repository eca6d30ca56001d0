import Glibc

/// A folder held by one program at a time: flock(2) on the folder itself.
///
/// The folder cannot lose its lock as a file in it can, which somebody may remove while it is
/// held. The file `lock` in it says who holds it, for people, and holds nothing.
package final class DirectoryLock: Sendable {
  /// Who holds a lock, as far as it says.
  package struct Holder: Sendable, Equatable {
    /// The holder's process; nil where the folder does not say.
    package let pid: Int32?
    /// What the holder wanted to be told of it, such as where it is mounted.
    package let note: String?

    package init(pid: Int32?, note: String?) {
      self.pid = pid
      self.note = note
    }
  }

  /// Why a folder is not locked.
  package enum Failure: Error, Sendable, Equatable {
    /// Another program, or another part of this one, holds it.
    case held(Holder)
    /// A call of the system failed; ESTALE where the folder was replaced meanwhile.
    case system(Errno)
  }

  private static let name: ByteString = "lock"

  private let folder: Locked<File?>
  private let note: String

  /// Locks a folder, and says so in it as far as there is room.
  ///
  /// - Parameters:
  ///   - path: the folder's path; it must still lead to the folder once that is locked.
  ///   - note: one line for whoever finds it locked.
  /// - Throws: `Failure`.
  package init(_ directory: borrowing Directory, at path: String, note: String = "")
    throws(Failure)
  {
    let opened = try Self.take(directory)
    guard Self.leads(path, to: opened.descriptor) else {
      opened.unlock()
      throw .system(.stale)
    }
    self.note = note
    folder = Locked(opened)
    sign(directory)
  }

  /// Locks the folder that is at the path now instead, since the locked one was removed.
  ///
  /// Does not wait for a program that holds it; it is signed by whoever fills it.
  /// - Throws: `Failure`; then the old one stays locked.
  package func move(to directory: borrowing Directory, at path: String) throws(Failure) {
    let opened = try Self.take(directory, tries: 1)
    guard Self.leads(path, to: opened.descriptor) else {
      opened.unlock()
      throw .system(.stale)
    }
    let new = Locked<File?>(opened)
    folder.withLock { folder in
      folder?.unlock()
      folder = new.withLock { $0.take() }
    }
  }

  /// Lets another program have the folder.
  package func release() {
    folder.withLock { folder in
      folder?.unlock()
      folder = nil
    }
  }

  /// Whether a path leads to the folder that is locked, and not to another one in its place.
  package func isHeld(at path: String) -> Bool {
    folder.withLock { folder in
      guard let descriptor = folder?.descriptor else { return false }
      return Self.leads(path, to: descriptor)
    }
  }

  private static func take(_ directory: borrowing Directory, tries: Int = tries) throws(Failure)
    -> File
  {
    do throws(Errno) {
      let opened = try directory.open(".", O_RDONLY | O_DIRECTORY)
      // A program that was killed holds what it held until the last of its threads has ended.
      for number in 1...tries {
        if flock(opened.descriptor, LOCK_EX | LOCK_NB) == 0 { return opened }
        let error = Errno.last
        guard error == .again else { throw error }
        if number < tries { usleep(Self.pause) }
      }
    } catch {
      throw .system(error)
    }
    throw .held(holder(directory))
  }

  private static let tries = 100
  /// Microseconds.
  private static let pause: UInt32 = 10_000

  private static func leads(_ path: String, to descriptor: CInt) -> Bool {
    var there = stat()
    var held = stat()
    guard lstat(path, &there) == 0, fstat(descriptor, &held) == 0 else { return false }
    return there.st_dev == held.st_dev && there.st_ino == held.st_ino
  }

  /// Says in the folder who holds it; once more, where somebody has removed that.
  package func sign(_ directory: borrowing Directory) {
    do throws(Errno) {
      let file = try directory.open(Self.name, O_RDWR | O_CREAT)
      try file.truncate(to: 0)
      try Array("\(getpid())\n\(note)\n".utf8).withUnsafeBufferPointer { (text) throws(Errno) in
        try file.write(UnsafeRawBufferPointer(text), at: 0)
      }
    } catch {
      // The lock holds all the same; who meets it is not told whose it is.
      Log.debug("cannot note who holds a folder: \(error)")
    }
  }

  private static func holder(_ directory: borrowing Directory) -> Holder {
    do throws(Errno) {
      let bytes = try directory.open(name, O_RDONLY | O_NONBLOCK).readToEnd(limit: 1 << 16)
      let lines = String(decoding: bytes, as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false)
      return Holder(
        pid: lines.first.flatMap { Int32($0) },
        note: lines.count > 1 && !lines[1].isEmpty ? String(lines[1]) : nil)
    } catch {
      return Holder(pid: nil, note: nil)
    }
  }
}
