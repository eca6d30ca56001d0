package import BucketStore
import FileCache
package import PendingQueue
import Platform

extension FileSystem: StoredFileReceiver {
  /// Makes the bytes the cache's copy, and lets the store's object show in the pending file's place:
  /// the same name, inode, size and times, at every moment.
  package func take(_ file: StoredFile) -> Bool {
    let object = file.object
    let folder = FolderName(containing: object)
    let segment = object.key.dropFirst(folder.prefix.count)
    if listings.options.names.isMarker(segment) {
      noteStoredFolder(folder, isNew: true)
      return false
    }
    let isKept = cache.adopt(file.path, size: file.size, as: object, file.info) != nil
    guard let name = listings.options.names.name(of: segment) else { return isKept }
    let entry = ListingEntry(
      name: name, kind: .file, size: file.info.size ?? file.size, tag: file.info.tag,
      modified: file.info.modified, contentType: file.info.contentType)
    keptAttributes.set(
      KeptAttributes(
        tag: entry.tag, size: entry.size, modified: file.modified,
        mode: file.mode == 0o644 ? nil : file.mode, extended: file.attributes),
      of: segment, in: folder)
    noteStored(name, in: folder, entry)
    noteStoredFolder(folder)
    tree.withLock { $0.handOver(.object(object), FileFacts(entry)) }
    return isKept
  }

  /// Lets another writer's object show under a name, in place of what is kept of it.
  package func changedElsewhere(_ object: ObjectName, _ info: ObjectInfo) {
    cache.drop(object)
    let folder = FolderName(containing: object)
    guard let name = listings.options.names.name(of: object.key.dropFirst(folder.prefix.count))
    else { return }
    noteStored(
      name, in: folder,
      ListingEntry(
        name: name, kind: .file, size: info.size, tag: info.tag, modified: info.modified,
        contentType: info.contentType))
    noteStoredFolder(folder)
  }

  /// Drops what is kept of an object that the store no longer has as it was.
  package func storeChanged(_ object: ObjectName) {
    cache.drop(object)
    let folder = FolderName(containing: object)
    let segment = object.key.dropFirst(folder.prefix.count)
    // A folder that was removed while the object was on its way was there again for a moment.
    var inner = folder
    while let parent = inner.parent, !inner.isBucket {
      guard let name = listings.options.names.name(of: inner.segment) else { break }
      recent.withLock { $0.renew(name, in: parent) }
      inner = parent
    }
    guard !listings.options.names.isMarker(segment),
      let name = listings.options.names.name(of: segment)
    else { return }
    noteStored(name, in: folder, nil)
  }
}
