import CLinux
import Glibc
import Platform

/// An object that is being written: a file of a hidden name in the folder where it is to stand.
///
/// Nobody sees it before `publish`; what is not published is removed.
struct DirectoryDraft: ~Copyable {
  private let object: ObjectName
  private let folder: File
  private let file: File
  private let temporary: ByteString
  private let name: ByteString

  /// Makes the folders of the object's key, and the file.
  init(of object: ObjectName, in root: borrowing Directory) throws(StoreError) {
    let (parent, name) = Directory.parts(of: object.key)
    let temporary = ByteString(
      ".bucketfs-\(String(UInt64.random(in: .min ... .max), radix: 16)).part")
    var tries = 0
    while true {
      do throws(Errno) {
        let bucket = try Directory(
          owning: root.open(object.bucket, O_RDONLY | O_DIRECTORY), stayingOnMount: true)
        // A plain folder, for whom the person's own mask lets see it.
        if parent != "." { try bucket.makeFolders(parent, mode: 0o777) }
        let folder = try bucket.open(parent, O_RDONLY | O_DIRECTORY)
        let made = try temporary.withCString { (name) throws(Errno) in
          try check {
            openat(folder.descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
          }
        }
        self.object = object
        self.folder = folder
        self.file = File(owning: made)
        self.temporary = temporary
        self.name = name
        return
      } catch {
        tries += 1
        // Whoever deleted a neighbour may have removed the folder that was just made.
        if error == .noEntry, tries < 5 { continue }
        throw DirectoryStore.writingError(error, "\(object)")
      }
    }
  }

  deinit {
    _ = temporary.withCString { unlinkat(folder.descriptor, $0, 0) }
  }

  /// Whether a name is that of a draft, which is no object.
  static func isDraft(_ name: ByteString) -> Bool {
    name.hasPrefix(".bucketfs-") && name.hasSuffix(".part")
  }

  func fill(
    from source: any PutSource, size: Int64, progress: @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while offset < size {
      if call.cancellation.isCancelled { throw StoreError(.cancelled, "cancelled") }
      let wanted = Int(min(Int64(buffer.count), size - offset))
      let count: Int
      do throws(Errno) {
        count = try source.read(
          UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
      } catch {
        throw StoreError(.damaged, "\(object): its bytes cannot be read: \(error)")
      }
      guard count > 0 else {
        throw StoreError(.damaged, "\(object): only \(offset) of \(size) bytes are there")
      }
      do throws(Errno) {
        try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
      } catch {
        throw DirectoryStore.writingError(error, "\(object)")
      }
      offset += Int64(count)
      progress(offset)
    }
  }

  /// Keeps type and metadata beside the bytes, where the file system has extended attributes.
  func describe(_ request: PutRequest) throws(StoreError) {
    do throws(Errno) {
      try file.setAttribute(DirectoryFacts.typeAttribute, Array(request.contentType.utf8))
      try file.setAttribute(
        DirectoryFacts.metadataAttribute, DirectoryFacts.encode(request.userMetadata))
    } catch .notSupported {
      // `info` then tells neither.
    } catch {
      throw DirectoryStore.writingError(error, "\(object)")
    }
  }

  /// Makes the file durable and gives it its name.
  func publish(overwriting: Bool) throws(StoreError) {
    do throws(Errno) {
      try check { fsync(file.descriptor) }
    } catch {
      throw DirectoryStore.writingError(error, "\(object)")
    }
    try rename(temporary, in: folder.descriptor, overwriting: overwriting)
  }

  /// Has another object renamed into the place of this one, which must be free.
  func take(_ other: ObjectName, from root: borrowing Directory) throws(StoreError) {
    let (parent, last) = Directory.parts(of: other.bucket + "/" + other.key)
    let source = try Self.open(parent, in: root)
    try rename(last, in: source.descriptor, overwriting: false)
    do throws(Errno) {
      try check { fsync(source.descriptor) }
    } catch {
      throw DirectoryStore.writingError(error, "\(other)")
    }
  }

  private static func open(_ folder: ByteString, in root: borrowing Directory) throws(StoreError)
    -> File
  {
    do throws(Errno) {
      return try root.open(folder, O_RDONLY | O_DIRECTORY)
    } catch {
      throw DirectoryStore.writingError(error, "\(folder)")
    }
  }

  private func rename(_ old: ByteString, in source: CInt, overwriting: Bool)
    throws(StoreError)
  {
    var tries = 0
    while true {
      do throws(Errno) {
        try old.withCString { (old) throws(Errno) in
          try name.withCString { (name) throws(Errno) in
            _ = try check {
              bucketfs_renameat2(
                source, old, folder.descriptor, name,
                overwriting ? 0 : Self.noReplace)
            }
          }
        }
        try check { fsync(folder.descriptor) }
        return
      } catch {
        tries += 1
        // An empty folder of the name is no object.
        if tries == 1, error == .isDirectory || error == .exists,
          name.withCString({ unlinkat(folder.descriptor, $0, AT_REMOVEDIR) }) == 0
        {
          continue
        }
        throw DirectoryStore.writingError(error, "\(object)")
      }
    }
  }

  /// RENAME_NOREPLACE of renameat2(2), which is hidden behind _GNU_SOURCE.
  private static let noReplace: UInt32 = 1
}

extension DirectoryStore {
  static func writingError(_ error: Errno, _ what: String) -> StoreError {
    let kind: StoreError.Kind =
      switch error {
      case .exists: .exists
      case .notDirectory, .isDirectory, .loop, .nameTooLong, .invalid, .crossDevice: .keyRefused
      case .noEntry: .notFound
      case .permission, .notPermitted, .readOnly: .refused
      case .fileTooLarge: .tooLarge
      case .interrupted: .cancelled
      default: .server
      }
    return StoreError(kind, "\(what): \(error)")
  }
}
