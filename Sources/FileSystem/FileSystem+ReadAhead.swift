import BucketStore
import FileCache
import Platform

extension FileSystem {
  /// Notes that a file is opened for reading, and has fetched what is likely to be opened next.
  ///
  /// Only files that are not kept begin it. Never waits, and touches memory alone.
  /// - Parameter isKept: whether the bytes were on this device already.
  func readAhead(after object: ObjectName, _ node: Node, isKept: Bool, _ caller: Caller) {
    guard cache.options.maxAge > .zero else { return }
    let folder = FolderName(containing: object)
    guard isKept ? readAhead.follows(folder) : !Indexer.isOne(caller.processID),
      let listing = listings.remembered(folder)
    else { return }
    readAhead.opened(
      node.name, in: listing, inode: { place(of: $0, in: folder)?.inodeHash },
      object: { entry in
        guard case .object(let object) = place(of: entry, in: folder),
          queue?.entry(for: object) == nil
        else { return nil }
        return object
      })
  }
}
