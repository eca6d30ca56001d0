import Glibc
import Platform

/// A file in `tmp` that a download grows into; renamed once it is whole.
final class PartFile: Sendable {
  /// Relative to the cache's folder.
  let path: ByteString
  let file: File

  private init(_ path: ByteString, _ file: consuming File) {
    self.path = path
    self.file = file
  }

  /// Makes an empty file under a name that no other download has.
  static func make(in directory: CacheDirectory, content: UInt64) throws(Errno) -> PartFile {
    let name = "\(Timestamp.now.nanoseconds)-\(content).part"
    let path = CacheDirectory.temporary + "/" + ByteString(name)
    let flags = O_RDWR | O_CREAT | O_EXCL
    do throws(Errno) {
      return PartFile(path, try directory.root.open(path, flags))
    } catch .noEntry {
      // Somebody has cleared the cache's folder.
      directory.restore()
      return PartFile(path, try directory.root.open(path, flags))
    }
  }

  /// Opens a file that an earlier download left, when nobody has touched it since.
  static func reopen(_ partial: Partial, in directory: CacheDirectory) throws(Errno) -> PartFile? {
    let file = try directory.root.open(partial.path, O_RDWR | O_NONBLOCK)
    let status = try file.status()
    guard status.st_mode & S_IFMT == S_IFREG, FileStamp(status) == partial.stamp else {
      return nil
    }
    return PartFile(partial.path, file)
  }

  /// What the file is told apart by; nil where the system does not say.
  var stamp: FileStamp? {
    do throws(Errno) {
      return FileStamp(try file.status())
    } catch {
      Log.warning("cannot look at \(path): \(error)")
      return nil
    }
  }

  /// Whether both files hold the same bytes in these ranges.
  func agrees(with other: PartFile, in ranges: [Range<Int64>]) throws(Errno) -> Bool {
    let mine = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 17, alignment: 16)
    defer { mine.deallocate() }
    let theirs = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 17, alignment: 16)
    defer { theirs.deallocate() }
    for range in ranges {
      var position = range.lowerBound
      while position < range.upperBound {
        let wanted = Int(min(Int64(mine.count), range.upperBound - position))
        let first = UnsafeMutableRawBufferPointer(rebasing: mine[..<wanted])
        let second = UnsafeMutableRawBufferPointer(rebasing: theirs[..<wanted])
        guard try file.read(first, at: position) == wanted,
          try other.file.read(second, at: position) == wanted,
          first.elementsEqual(second)
        else { return false }
        position += Int64(wanted)
      }
    }
    return true
  }
}
