import BucketStore
import Platform

/// What is pending under which name, by folders.
///
/// A folder is there for as long as anything pending lies below it. The buckets lie in one folder
/// as well: that of no bucket and no path.
struct FolderIndex {
  private struct FolderKey: Hashable {
    let bucket: ByteString
    /// Empty, or ending in `/`, as in the keys below it.
    let path: ByteString

    /// Whether it is the folder of all buckets, which lies in no other.
    var isTop: Bool { bucket.isEmpty }

    func folder(_ name: ByteString) -> FolderKey {
      isTop
        ? FolderKey(bucket: name, path: ByteString())
        : FolderKey(bucket: bucket, path: path + name + "/")
    }
  }

  private struct Folder {
    var files: [ByteString: PendingID] = [:]
    var deleted: Set<ByteString> = []
    var folders: Set<ByteString> = []

    var isEmpty: Bool { files.isEmpty && deleted.isEmpty && folders.isEmpty }
  }

  private var folders: [FolderKey: Folder] = [:]

  func id(of object: ObjectName) -> PendingID? {
    let (key, name) = Self.parts(of: object)
    return folders[key]?.files[name]
  }

  func isDeleted(_ object: ObjectName) -> Bool {
    let (key, name) = Self.parts(of: object)
    return folders[key]?.deleted.contains(name) ?? false
  }

  /// Shows a record under a name, or nothing; `deleted` hides what the store may have there.
  mutating func set(_ object: ObjectName, id: PendingID?, deleted: Bool) {
    let (key, name) = Self.parts(of: object)
    if id == nil && !deleted {
      guard folders[key] != nil else { return }
    } else {
      makeFolder(key)
    }
    folders[key]?.files[name] = id
    if deleted {
      folders[key]?.deleted.insert(name)
    } else {
      folders[key]?.deleted.remove(name)
    }
    removeIfEmpty(key)
  }

  func contents(of prefix: ByteString, in bucket: ByteString)
    -> (
      files: [ByteString: PendingID], folders: Set<ByteString>, emptied: Set<ByteString>,
      deleted: Set<ByteString>
    )
  {
    let key = FolderKey(bucket: bucket, path: prefix)
    guard let folder = folders[key] else { return ([:], [], [], []) }
    let shown = folder.folders.filter { hasFiles(below: key.folder($0)) }
    return (folder.files, shown, folder.folders.subtracting(shown), folder.deleted)
  }

  /// Whether anything is pending below a folder, deletions included.
  func hasAnything(below prefix: ByteString, in bucket: ByteString) -> Bool {
    folders[FolderKey(bucket: bucket, path: prefix)] != nil
  }

  /// False for a folder of nothing but deletions.
  func hasFiles(below prefix: ByteString, in bucket: ByteString) -> Bool {
    hasFiles(below: FolderKey(bucket: bucket, path: prefix))
  }

  private func hasFiles(below key: FolderKey) -> Bool {
    guard let folder = folders[key] else { return false }
    return !folder.files.isEmpty || folder.folders.contains { hasFiles(below: key.folder($0)) }
  }

  /// Whether a folder holds anything but deletions and one name.
  func hasFiles(in prefix: ByteString, of bucket: ByteString, besides name: ByteString) -> Bool {
    let key = FolderKey(bucket: bucket, path: prefix)
    guard let folder = folders[key] else { return false }
    if folder.files.count > (folder.files[name] == nil ? 0 : 1) { return true }
    return folder.folders.contains { inner in
      inner != name && hasFiles(below: key.folder(inner))
    }
  }

  private mutating func makeFolder(_ key: FolderKey) {
    guard folders[key] == nil else { return }
    folders[key] = Folder()
    guard !key.isTop else { return }
    let (parent, name) = Self.parent(of: key)
    makeFolder(parent)
    folders[parent]?.folders.insert(name)
  }

  private mutating func removeIfEmpty(_ key: FolderKey) {
    guard let folder = folders[key], folder.isEmpty else { return }
    folders[key] = nil
    guard !key.isTop else { return }
    let (parent, name) = Self.parent(of: key)
    folders[parent]?.folders.remove(name)
    removeIfEmpty(parent)
  }

  private static func parts(of object: ObjectName) -> (FolderKey, ByteString) {
    split(object.key, in: object.bucket)
  }

  private static func parent(of folder: FolderKey) -> (FolderKey, ByteString) {
    if folder.path.isEmpty {
      return (FolderKey(bucket: ByteString(), path: ByteString()), folder.bucket)
    }
    return split(folder.path.dropLast(), in: folder.bucket)
  }

  private static func split(_ key: ByteString, in bucket: ByteString) -> (FolderKey, ByteString) {
    let start = key.bytes.lastIndex(of: ByteString.slash).map { $0 + 1 } ?? 0
    return (
      FolderKey(bucket: bucket, path: ByteString(key.bytes[..<start])),
      ByteString(key.bytes[start...])
    )
  }
}
