import CLinux
import Glibc

/// An open folder below which every path stays: openat2(2) with RESOLVE_BENEATH and no symlinks.
///
/// What a server sends can name a path here, but never one outside the folder.
package struct Directory: ~Copyable, Sendable {
  private let file: File
  /// What every call fails with; nil for a folder that is there.
  private let refusal: Errno?
  /// Whether paths that lead onto another mount are refused.
  private let staysOnMount: Bool

  /// For calls that take one; it stays this value's.
  package var descriptor: CInt { file.descriptor }

  /// Takes over an open folder.
  ///
  /// - Parameter stayingOnMount: refuses what is mounted beneath (openat2(2), RESOLVE_NO_XDEV).
  package init(owning file: consuming File, stayingOnMount: Bool = false) {
    self.file = file
    refusal = nil
    staysOnMount = stayingOnMount
  }

  /// A folder that could not be made or opened: it holds nothing, and every call fails with `error`.
  package init(refusing error: Errno) {
    file = File(owning: -1)
    refusal = error
    staysOnMount = false
  }

  /// - Parameter stayingOnMount: refuses what is mounted beneath (openat2(2), RESOLVE_NO_XDEV).
  package init(_ path: String, stayingOnMount: Bool = false) throws(Errno) {
    file = try File(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    refusal = nil
    staysOnMount = stayingOnMount
  }

  /// Leads to another folder from this moment on, for all that use it meanwhile too (dup3(2)).
  package func lead(to other: borrowing Directory) throws(Errno) {
    if let refusal { throw refusal }
    let (old, new) = (descriptor, other.descriptor)
    _ = try check { bucketfs_dup3(new, old, O_CLOEXEC) }
  }

  /// Opens a relative path without following symlinks or leaving the folder.
  ///
  /// - Throws: `Errno`; EXDEV when the path would leave the folder, or its mount where it stays on
  ///   that; ELOOP at a symlink.
  package func open(_ path: ByteString, _ flags: CInt, mode: UInt32 = 0o600) throws(Errno) -> File {
    if let refusal { throw refusal }
    var how = bucketfs_open_how(
      flags: UInt64(UInt32(bitPattern: flags | O_CLOEXEC)),
      mode: flags & O_CREAT != 0 ? UInt64(mode) : 0,
      resolve: UInt64(
        BUCKETFS_RESOLVE_BENEATH | BUCKETFS_RESOLVE_NO_SYMLINKS | BUCKETFS_RESOLVE_NO_MAGICLINKS
          | (staysOnMount ? BUCKETFS_RESOLVE_NO_XDEV : 0)))
    let descriptor = descriptor
    let opened = try path.withCString { (name) throws(Errno) in
      try check { bucketfs_openat2(descriptor, name, &how) }
    }
    return File(owning: opened)
  }

  /// Makes every folder of a relative path that is missing.
  ///
  /// - Parameter mode: permission bits, less those of the process's mask.
  package func makeFolders(_ path: ByteString, mode: UInt32 = 0o700) throws(Errno) {
    var made = ByteString()
    for segment in path.split(at: ByteString.slash) where !segment.isEmpty {
      let parent = made
      made = made.isEmpty ? segment : made + "/" + segment
      let folder = try open(parent.isEmpty ? "." : parent, O_RDONLY | O_DIRECTORY)
      do throws(Errno) {
        try segment.withCString { (name) throws(Errno) in
          _ = try check { mkdirat(folder.descriptor, name, mode) }
        }
      } catch {
        if error != .exists { throw error }
      }
    }
  }

  /// Removes the name of a file; the folder that holds it is opened beneath this one first.
  package func remove(_ path: ByteString) throws(Errno) {
    let (parent, name) = Self.parts(of: path)
    let folder = try open(parent, O_RDONLY | O_DIRECTORY)
    try name.withCString { (name) throws(Errno) in
      _ = try check { unlinkat(folder.descriptor, name, 0) }
    }
  }

  /// Removes an empty folder beneath this one.
  package func removeFolder(_ path: ByteString) throws(Errno) {
    let (parent, name) = Self.parts(of: path)
    let folder = try open(parent, O_RDONLY | O_DIRECTORY)
    try name.withCString { (name) throws(Errno) in
      _ = try check { unlinkat(folder.descriptor, name, AT_REMOVEDIR) }
    }
  }

  /// Renames a file of one folder into a path of this one, over what is there.
  package func take(_ name: ByteString, from source: borrowing Directory, as path: ByteString)
    throws(Errno)
  {
    let (parent, last) = Self.parts(of: path)
    let folder = try open(parent, O_RDONLY | O_DIRECTORY)
    let (sourceParent, sourceLast) = Self.parts(of: name)
    let sourceFolder = try source.open(sourceParent, O_RDONLY | O_DIRECTORY)
    try sourceLast.withCString { (old) throws(Errno) in
      try last.withCString { (new) throws(Errno) in
        _ = try check { renameat(sourceFolder.descriptor, old, folder.descriptor, new) }
      }
    }
  }

  /// The folder of a relative path (`.` where it names none), and its last segment.
  package static func parts(of path: ByteString) -> (parent: ByteString, name: ByteString) {
    guard let cut = path.bytes.lastIndex(of: ByteString.slash) else { return (".", path) }
    return (ByteString(path.bytes[..<cut]), ByteString(path.bytes[(cut + 1)...]))
  }
}
