import Glibc
import Platform

/// Where blobs are kept: files below a data folder, or memory and nameless files without one.
final class BlobStore: Sendable {
  /// Blobs of at most this many bytes stay in memory when there is no data folder.
  static let memoryLimit = 1 << 20

  private let folder: String?
  private let isClosed = Locked(false)

  /// - Parameter data: the data folder; nil keeps nothing beyond the life of the process.
  init(data: String?) throws(Errno) {
    folder = data.map { $0 + "/blobs" }
    if let folder { try Self.makeFolder(folder) }
  }

  static func makeFolder(_ path: String) throws(Errno) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last }
  }

  /// Leaves the files of the data folder on the disk when the objects go.
  func close() {
    isClosed.withLock { $0 = true }
  }

  /// Takes whole bytes, which may be shared by any number of objects.
  func keep(_ bytes: [UInt8]) throws(Errno) -> Blob {
    if folder == nil, bytes.count <= Self.memoryLimit { return .bytes(bytes) }
    let (blob, shared) = try newFile()
    try bytes.withUnsafeBufferPointer { (raw) throws(Errno) in
      try shared.file.write(UnsafeRawBufferPointer(raw), at: 0)
    }
    return .file(blob)
  }

  func newFile() throws(Errno) -> (BlobFile, SharedFile) {
    guard let folder else {
      let file = SharedFile(try File("/tmp", O_RDWR | temporaryFile))
      return (BlobFile(.open(file)), file)
    }
    let path = folder + "/" + Identifier.uuid()
    let file = SharedFile(try File(path, O_RDWR | O_CREAT | O_EXCL))
    return (BlobFile(.path(path, isKept: isKept)), file)
  }

  /// The blob that an earlier run wrote under that name.
  func known(_ name: String) -> Blob {
    guard let folder else { preconditionFailure("only a data folder knows earlier runs") }
    return .file(BlobFile(.path(folder + "/" + name, isKept: isKept)))
  }

  /// Removes the files of earlier runs that nothing refers to.
  func removeAll(except names: Set<String>) {
    // What cannot be listed is left where it lies: it takes room, and harms nothing.
    guard let folder, let entries = try? File(folder, O_RDONLY | O_DIRECTORY).entries() else {
      return
    }
    for entry in entries {
      let name = entry.name.description
      if !names.contains(name) { unlink(folder + "/" + name) }
    }
  }

  private var isKept: @Sendable () -> Bool {
    let isClosed = isClosed
    return { isClosed.withLock { $0 } }
  }
}

/// O_TMPFILE of open(2), a macro that Swift does not import.
private let temporaryFile: CInt = 0o20000000 | O_DIRECTORY
