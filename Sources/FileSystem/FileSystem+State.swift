import BucketStore
import FileCache
import Glibc
import PendingQueue
package import Platform

extension FileSystem {
  /// The names of the extended attributes that programs have set of an inode (FUSE_LISTXATTR).
  ///
  /// What the mount says of its files, `user.bucketfs.*`, is there for who asks for it by name:
  /// programs that copy what is listed would set it on other files. Never the network.
  package func extendedAttributeNames(of inode: UInt64, _ caller: Caller) throws(Failure)
    -> [ByteString]
  {
    let node = try node(inode)
    guard caller.lane > .fast else { throw .takesTime }
    return Array(setAttributes(of: node).keys)
  }

  /// The value of one extended attribute (FUSE_GETXATTR). Never the network.
  ///
  /// - Throws: `Failure`; ENODATA when there is no such attribute.
  package func extendedAttribute(_ name: ByteString, of inode: UInt64, _ caller: Caller)
    throws(Failure) -> [UInt8]
  {
    let isOwn = name.hasPrefix(Self.attributePrefix)
    // The kernel asks for others at each write.
    guard isOwn || (name.hasPrefix("user.") && queue != nil),
      let found = try extendedAttributes(of: inode, caller).first(where: { $0.name == name })
    else { throw Failure(.noAttribute, "inode \(inode): no attribute \(name)") }
    return found.value.bytes
  }

  static let attributePrefix: ByteString = "user.bucketfs."

  private func extendedAttributes(of inode: UInt64, _ caller: Caller) throws(Failure) -> [(
    name: ByteString, value: ByteString
  )] {
    let node = try node(inode)
    // A long listing may have to be read, or a copy to be compared with its checksum.
    guard caller.lane > .fast else { throw .takesTime }
    let facts: [(String, ByteString?)]
    switch node.place {
    case .folder(let folder):
      let listing = listings.kept(folder)
      facts = [
        ("key", folder.isBuckets ? nil : folder.prefix),
        ("fetched_at", listing.map { ByteString($0.fetchedAt.text) }),
      ]
    case .object(let object):
      if let pending = queue.flatMap({ $0.isEmpty ? nil : $0.entry(for: object) }) {
        facts = self.facts(of: pending)
        break
      }
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
    } + setAttributes(of: node).map { ($0.key, ByteString($0.value)) }
  }

  private func facts(of pending: PendingEntry) -> [(String, ByteString?)] {
    let record = pending.record
    return [
      ("state", ByteString(record.state.rawValue)),
      ("reason", record.failure.map { ByteString($0.reason) }),
      ("attempts", ByteString("\(record.attempts)")),
      ("content_type", ByteString(record.contentType)),
      ("key", record.object.key),
    ]
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
  /// Used is what the copies and the pending files take; free is what the device has left, for
  /// pending files where files can be written.
  package func statistics(_ caller: Caller) -> Statistics {
    let free = Self.room(in: queue?.path ?? cache.options.directory)
    let used = UInt64(max(cache.usage.bytes &+ (queue?.counts.bytes ?? 0), 0))
    return Statistics(
      blockSize: Self.blockSize, blocks: (used &+ free) / UInt64(Self.blockSize),
      freeBlocks: free / UInt64(Self.blockSize), files: UInt64(nodeCount),
      freeFiles: isWritable ? free / UInt64(Self.blockSize) : 0,
      longestName: UInt32(KeyNames.longestName))
  }

  /// Bytes that a folder's disk has left for this user.
  private static func room(in folder: String) -> UInt64 {
    var device = statvfs()
    guard folder.withCString({ statvfs($0, &device) }) == 0 else { return 0 }
    return UInt64(device.f_bavail) &* UInt64(device.f_frsize)
  }

  private static let blockSize: UInt32 = 4096
}
