import FileCache
import Platform

extension FileSystem {
  /// - Parameter place: what it stands for, by which what a person has set of it is found.
  func attributes(of entry: TreeEntry, at place: Place?, inode: UInt64) -> Attributes {
    let set = entry.pending == nil ? place.flatMap { kept(of: $0, entry.line) } : nil
    return attributes(
      inode, isDirectory: entry.isFolder, size: entry.isFolder ? 0 : entry.line.size ?? 0,
      modified: set?.modified ?? entry.line.modified, mode: entry.pending?.record.mode ?? set?.mode)
  }

  /// What was set of a file or folder; nothing, when that was another version.
  func kept(of place: Place, _ line: ListingEntry?) -> KeptAttributes? {
    guard queue != nil, !keptAttributes.isEmpty else { return nil }
    let (folder, name) = place.line
    guard let kept = keptAttributes.attributes(of: name, in: folder) else { return nil }
    if let line, !line.isFolder, !kept.belong(to: line.tag, size: line.size) { return nil }
    return kept
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
    let set = kept(of: .folder(options.root), nil)
    return attributes(
      NodeTable.root, isDirectory: true, size: 0,
      modified: set?.modified ?? listings.remembered(options.root)?.newest, mode: set?.mode)
  }

  /// A folder's attributes from memory, for `.` and `..`.
  func attributes(ofFolder inode: UInt64) -> Attributes {
    if inode == NodeTable.root { return rootAttributes }
    guard let node = tree.withLock({ $0[inode] }), case .folder(let folder) = node.place,
      let entry = folder.parent.flatMap(listings.remembered)?.entry(node.name)
    else {
      return attributes(inode, isDirectory: true, size: 0, modified: nil)
    }
    return attributes(of: TreeEntry(entry), at: node.place, inode: inode)
  }

  private func attributes(
    _ inode: UInt64, isDirectory: Bool, size: Int64, modified: Timestamp?, mode: UInt32? = nil
  ) -> Attributes {
    let size = max(size, 0)
    return Attributes(
      inode: inode, isDirectory: isDirectory, size: size, modified: modified ?? .epoch,
      mode: self.mode(isDirectory: isDirectory, mode), links: 1, uid: options.uid, gid: options.gid,
      blocks: UInt64(size / 512 + (size % 512 == 0 ? 0 : 1)))
  }

  /// - Parameter set: permission bits as a person set them; nil for what is usual.
  private func mode(isDirectory: Bool, _ set: UInt32?) -> UInt32 {
    let type: UInt32 = isDirectory ? 0o040000 : 0o100000
    let bits = set.map { $0 & 0o777 } ?? (isDirectory ? 0o755 : 0o644) & ~options.umask
    return type | (isReadOnly ? bits & ~0o222 : bits)
  }
}
