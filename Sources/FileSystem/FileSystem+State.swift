import BucketStore
import FileCache
import Glibc
package import Platform

extension FileSystem {
  /// The names of an inode's extended attributes (FUSE_LISTXATTR), `user.bucketfs.*`. Never the
  /// network.
  package func extendedAttributeNames(of inode: UInt64, _ caller: Caller) throws(Failure)
    -> [ByteString]
  {
    try extendedAttributes(of: inode, caller).map(\.name)
  }

  /// The value of one extended attribute (FUSE_GETXATTR). Never the network.
  ///
  /// - Throws: `Failure`; ENODATA when there is no such attribute.
  package func extendedAttribute(_ name: ByteString, of inode: UInt64, _ caller: Caller)
    throws(Failure) -> [UInt8]
  {
    guard name.hasPrefix(Self.attributePrefix),
      let found = try extendedAttributes(of: inode, caller).first(where: { $0.name == name })
    else { throw Failure(.noAttribute, "inode \(inode): no attribute \(name)") }
    return found.value.bytes
  }

  private static let attributePrefix: ByteString = "user.bucketfs."

  private func extendedAttributes(of inode: UInt64, _ caller: Caller) throws(Failure) -> [(
    name: ByteString, value: ByteString
  )] {
    let node = try node(inode)
    // A long listing may have to be read, or a copy to be compared with its checksum.
    guard caller.lane > .fast else { throw .takesTime }
    var facts: [(String, ByteString?)]
    switch node.place {
    case .folder(let folder):
      let listing = listings.kept(folder)
      facts = [
        ("key", folder.isBuckets ? nil : folder.prefix),
        ("fetched_at", listing.map { ByteString($0.fetchedAt.text) }),
      ]
    case .object(let object):
      let copy = cache.copy(of: object)
      let listed = listings.kept(FolderName(containing: object))?.entry(node.name)
      facts = [
        ("state", copy == nil ? "remote" : "cached"),
        ("etag", (copy?.info.tag ?? listed?.tag).map { ByteString($0) }),
        ("fetched_at", copy.map { ByteString($0.fetched.text) }),
        ("content_type", (copy?.info.contentType ?? listed?.contentType).map { ByteString($0) }),
        ("key", object.key),
      ]
    }
    return facts.compactMap { name, value in
      value.map { (Self.attributePrefix + ByteString(name), $0) }
    }
  }

  /// An entry made of a copy, where no listing is kept and the store cannot be asked.
  func entryOfCopy(_ name: ByteString, in folder: FolderName) -> ListingEntry? {
    guard !folder.isBuckets, let segment = listings.options.names.segment(of: name),
      let info = cache.copy(of: folder.object(segment))?.info
    else { return nil }
    return ListingEntry(
      name: name, kind: .file, size: info.size, tag: info.tag, modified: info.modified,
      contentType: info.contentType)
  }

  /// What statfs(2) shows (FUSE_STATFS). Never waits, on either lane.
  ///
  /// Used is what the copies take, free is what the device has left for more.
  package func statistics(_ caller: Caller) -> Statistics {
    let usage = cache.usage
    var device = statvfs()
    let isKnown = cache.options.directory.withCString { statvfs($0, &device) } == 0
    let free = isKnown ? UInt64(device.f_bavail) &* UInt64(device.f_frsize) : 0
    let used = UInt64(max(usage.bytes, 0))
    return Statistics(
      blockSize: Self.blockSize, blocks: (used &+ free) / UInt64(Self.blockSize),
      freeBlocks: free / UInt64(Self.blockSize), files: UInt64(nodeCount),
      longestName: UInt32(KeyNames.longestName))
  }

  private static let blockSize: UInt32 = 4096
}
