import BucketStore
import FileCache
package import Platform

extension FileSystem {
  /// What a name in a folder leads to (FUSE_LOOKUP). A name that is found counts as one answer,
  /// which `forget` takes back.
  ///
  /// - Throws: `Failure`; ENAMETOOLONG, ENOTDIR, or the store's failure when nothing kept answers.
  package func lookup(_ name: ByteString, in parent: UInt64, _ caller: Caller) throws(Failure)
    -> Lookup
  {
    let folder = try folder(parent)
    guard name.count <= KeyNames.longestName else {
      throw Failure(.nameTooLong, "\(folder)\(name): name is too long")
    }
    guard KeyNames.isName(name) else { return .missing(timeout: .zero) }
    let listing = try listing(of: folder, caller)
    let timeout = listing.freshness(listings.options.maxAge)
    guard let entry = listing.entry(name), let place = place(of: entry, in: folder) else {
      return .missing(timeout: timeout)
    }
    let inode = tree.withLock { $0.reference(place, parent: parent, name: name) }
    return .found(
      Entry(
        attributes: attributes(of: entry, inode: inode), entryTimeout: timeout,
        attributesTimeout: timeout))
  }

  /// The attributes of an inode (FUSE_GETATTR).
  ///
  /// - Throws: `Failure`; ENOENT when its name is gone.
  package func attributes(of inode: UInt64, _ caller: Caller) throws(Failure) -> Entry {
    let node = try node(inode)
    if inode == NodeTable.root {
      return Entry(
        attributes: rootAttributes, entryTimeout: listings.options.maxAge,
        attributesTimeout: listings.options.maxAge)
    }
    let folder = try folder(containing: node)
    let listing = try listing(of: folder, caller)
    guard let entry = listing.entry(node.name), place(of: entry, in: folder) == node.place else {
      throw Failure(.noEntry, "\(node.place): no longer there")
    }
    let timeout = listing.freshness(listings.options.maxAge)
    return Entry(
      attributes: attributes(of: entry, inode: inode), entryTimeout: timeout,
      attributesTimeout: timeout)
  }

  /// The listing of a folder, for which the fast lane does not wait.
  func listing(of folder: FolderName, _ caller: Caller) throws(Failure) -> Listing {
    if let listing = listings.fresh(folder) { return listing }
    guard caller.lane == .slow else { throw .mustWait }
    do throws(StoreError) {
      return try listings.current(folder, caller.call)
    } catch {
      throw Failure(error, folder.description)
    }
  }

  /// The folder in whose listing a node's own line is.
  func folder(containing node: Node) throws(Failure) -> FolderName {
    switch node.place {
    case .object(let object):
      let cut = object.key.bytes.lastIndex(of: ByteString.slash)
      return FolderName(
        bucket: object.bucket,
        prefix: ByteString(cut.map { object.key.bytes[...$0] } ?? []))
    case .folder(let folder):
      guard let parent = folder.parent else {
        throw Failure(.invalid, "the list of buckets has no parent")
      }
      return parent
    }
  }

  /// What an entry of a folder stands for; nil when the store can hold no such name.
  func place(of entry: ListingEntry, in folder: FolderName) -> Place? {
    guard let segment = listings.options.names.segment(of: entry.name) else { return nil }
    return entry.isFolder ? .folder(folder.folder(segment)) : .object(folder.object(segment))
  }

  func attributes(of entry: ListingEntry, inode: UInt64) -> Attributes {
    let size = entry.isFolder ? 0 : entry.size ?? 0
    return Attributes(
      inode: inode, isDirectory: entry.isFolder, size: size,
      modified: entry.modified ?? .epoch, mode: mode(isDirectory: entry.isFolder), links: 1,
      uid: options.uid, gid: options.gid, blocks: (UInt64(max(size, 0)) + 511) / 512)
  }

  var rootAttributes: Attributes {
    Attributes(
      inode: NodeTable.root, isDirectory: true, size: 0,
      modified: listings.kept(options.root)?.fetchedAt ?? .epoch,
      mode: mode(isDirectory: true), links: 1, uid: options.uid, gid: options.gid, blocks: 0)
  }

  private func mode(isDirectory: Bool) -> UInt32 {
    let write: UInt32 = options.readOnly ? 0o222 : 0o022
    let type: UInt32 = isDirectory ? 0o040000 : 0o100000
    return type | ((isDirectory ? 0o777 : 0o666) & ~(write | options.umask))
  }
}
