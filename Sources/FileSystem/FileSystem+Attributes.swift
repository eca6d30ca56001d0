import FileCache
import Platform

extension FileSystem {
  func attributes(of entry: ListingEntry, inode: UInt64) -> Attributes {
    attributes(
      inode, isDirectory: entry.isFolder, size: entry.isFolder ? 0 : entry.size ?? 0,
      modified: entry.modified)
  }

  /// A file as the kernel was told of it.
  func entry(_ inode: UInt64, _ facts: FileFacts, _ believed: Span) -> Entry {
    Entry(
      attributes: attributes(
        inode, isDirectory: false, size: facts.size ?? 0, modified: facts.modified),
      entryTimeout: believed, attributesTimeout: facts.size == nil ? .zero : believed)
  }

  var rootEntry: Entry {
    Entry(
      attributes: rootAttributes, entryTimeout: listings.options.maxAge,
      attributesTimeout: listings.options.maxAge)
  }

  /// The root is there whatever the store says: a mount may be made with no network.
  private var rootAttributes: Attributes {
    attributes(
      NodeTable.root, isDirectory: true, size: 0,
      modified: listings.remembered(options.root)?.newest)
  }

  /// A folder's attributes from memory, for `.` and `..`.
  func attributes(ofFolder inode: UInt64) -> Attributes {
    if inode == NodeTable.root { return rootAttributes }
    guard let node = tree.withLock({ $0[inode] }), case .folder(let folder) = node.place,
      let entry = folder.parent.flatMap(listings.remembered)?.entry(node.name)
    else {
      return attributes(inode, isDirectory: true, size: 0, modified: nil)
    }
    return attributes(of: entry, inode: inode)
  }

  private func attributes(
    _ inode: UInt64, isDirectory: Bool, size: Int64, modified: Timestamp?
  ) -> Attributes {
    let size = max(size, 0)
    return Attributes(
      inode: inode, isDirectory: isDirectory, size: size, modified: modified ?? .epoch,
      mode: mode(isDirectory: isDirectory), links: 1, uid: options.uid, gid: options.gid,
      blocks: UInt64(size / 512 + (size % 512 == 0 ? 0 : 1)))
  }

  private func mode(isDirectory: Bool) -> UInt32 {
    let write: UInt32 = options.readOnly ? 0o222 : 0o022
    let type: UInt32 = isDirectory ? 0o040000 : 0o100000
    return type | ((isDirectory ? 0o777 : 0o666) & ~(write | options.umask))
  }
}
