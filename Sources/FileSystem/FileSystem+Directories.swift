import FileCache
import Platform

extension FileSystem {
  /// Opens a folder (FUSE_OPENDIR): asks the store unless its listing is fresh.
  ///
  /// - Throws: `Failure`; ENOTDIR, ENOENT, or the store's failure when no listing is kept.
  package func openDirectory(_ inode: UInt64, _ caller: Caller) throws(Failure) -> DirectoryHandle {
    let node = try node(inode)
    let folder = try folder(inode)
    let listing = try listing(of: folder, caller)
    let own = ownAttributes(inode, node)
    let parent = tree.withLock { $0[node.parent] }.map { ownAttributes(node.parent, $0) } ?? own
    return DirectoryHandle(
      inode: inode, folder: folder, listing: listing, own: own, parent: parent,
      attributes: { [self] entry in
        let inode = place(of: entry, in: folder).map { place in
          tree.withLock { $0.inode(of: place) }
        }
        return attributes(of: entry, inode: inode ?? 0)
      },
      onClose: {})
  }

  /// Counts one more answer that names an entry of an open folder, as readdirplus gives it.
  ///
  /// - Returns: nil for `.` and `..`, which the kernel does not count.
  package func reference(_ index: Int, of handle: DirectoryHandle) -> Entry? {
    guard index >= 2, index < handle.count else { return nil }
    let entry = handle.listing[index - 2]
    guard let place = place(of: entry, in: handle.folder) else { return nil }
    let inode = tree.withLock {
      $0.reference(place, parent: handle.inode, name: entry.name)
    }
    let timeout = handle.listing.freshness(listings.options.maxAge)
    return Entry(
      attributes: attributes(of: entry, inode: inode), entryTimeout: timeout,
      attributesTimeout: timeout)
  }

  /// A folder's attributes from memory, for `.` and `..`.
  private func ownAttributes(_ inode: UInt64, _ node: Node) -> Attributes {
    guard inode != NodeTable.root, case .folder(let folder) = node.place,
      let entry = folder.parent.flatMap(listings.kept)?.entry(node.name)
    else {
      var attributes = rootAttributes
      attributes.inode = inode
      return attributes
    }
    return attributes(of: entry, inode: inode)
  }
}
