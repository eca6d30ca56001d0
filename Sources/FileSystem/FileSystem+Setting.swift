import BucketStore
import FileCache
import Glibc
import PendingQueue
package import Platform

/// What to set of a file or folder (setattr of FUSE); nil leaves as it is.
package struct AttributeChanges: Sendable {
  /// Bytes.
  package var size: Int64?
  /// Permission bits.
  package var mode: UInt32?
  /// The owner, as of chown(2).
  package var uid: UInt32?
  /// The group, as of chown(2).
  package var gid: UInt32?
  /// The modification time, as of utimensat(2).
  package var modified: Timestamp?

  package init() {}
}

extension FileSystem {
  /// Sets length, times and mode (FUSE_SETATTR), and tells what they are then.
  ///
  /// Times and mode of what the store has are kept on this device; times of access are not kept.
  /// - Parameter handle: the open file that it was asked of, if any.
  /// - Throws: `Failure`; EPERM for another owner, EROFS, or as `write`.
  package func set(
    _ changes: AttributeChanges, of inode: UInt64, _ handle: FileHandle?, _ caller: Caller
  ) throws(Failure) -> Entry {
    let queue = try writable("inode \(inode)")
    guard changes.uid ?? options.uid == options.uid, changes.gid ?? options.gid == options.gid
    else {
      throw Failure(.notPermitted, "inode \(inode): a mount's files have one owner")
    }
    if let size = changes.size { try truncate(inode, to: size, handle, caller) }
    if changes.mode != nil || changes.modified != nil {
      try setKept(changes, of: inode, queue, caller)
    }
    return try attributes(of: inode, caller)
  }

  private func truncate(_ inode: UInt64, to size: Int64, _ handle: FileHandle?, _ caller: Caller)
    throws(Failure)
  {
    guard size >= 0 else { throw Failure(.invalid, "inode \(inode): length below zero") }
    if let handle, handle.isWriter {
      return try change(handle, caller) { (file) throws(Errno) in
        try file.truncate(to: size, mayWait: caller.mayWait)
      }
    }
    guard caller.mayWait else { throw .takesTime }
    let handle = try open(inode, flags: size == 0 ? O_WRONLY | O_TRUNC : O_WRONLY, caller)
    defer { handle.close() }
    if size > 0 {
      try change(handle, caller) { (file) throws(Errno) in try file.truncate(to: size) }
    }
    try flush(handle, caller)
  }

  private func setKept(
    _ changes: AttributeChanges, of inode: UInt64, _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) {
    let node = try node(inode)
    // Nobody will see it again.
    if node.isUnlinked { return }
    if case .object(let object) = node.place {
      let pending = PendingAttributes(modified: changes.modified, mode: changes.mode)
      let isPending = try setPending(object) { () throws(Errno) in
        try queue.set(pending, of: object, mayWait: caller.mayWait)
      }
      if isPending { return }
    }
    guard caller.lane > .fast else { throw .takesTime }
    set(of: node.place, try line(of: node, inode, caller)) { kept in
      if let mode = changes.mode { kept.mode = mode & 0o777 }
      if let modified = changes.modified { kept.modified = modified }
    }
  }

  /// Changes a record that is pending under a name.
  ///
  /// - Returns: false when there is none.
  private func setPending(_ object: ObjectName, _ body: () throws(Errno) -> Void) throws(Failure)
    -> Bool
  {
    guard let queue, !queue.isEmpty else { return false }
    do throws(Errno) {
      try changing(object, body)
      return true
    } catch .noEntry {
      return false
    } catch .again {
      throw .takesTime
    } catch {
      throw Failure(error, "\(object): cannot be set: \(error)", level: Self.level(error))
    }
  }

  /// The line of a folder that a node's attributes are said of; nil for the root.
  private func line(of node: Node, _ inode: UInt64, _ caller: Caller) throws(Failure)
    -> ListingEntry?
  {
    if inode == NodeTable.root { return nil }
    let (found, _) = try find(node.name, in: try folder(containing: node), caller)
    guard let found else { throw Failure(.noEntry, "\(node.place): no longer there") }
    return found.line
  }

  // MARK: - Extended attributes

  /// Sets an extended attribute (FUSE_SETXATTR), or removes it (FUSE_REMOVEXATTR).
  ///
  /// Setting `user.bucketfs.retry` has a pending file tried again at once; what a mount says of its
  /// files (`user.bucketfs.`) is not changed by setting it.
  /// - Parameters:
  ///   - value: nil to remove it.
  ///   - flags: XATTR_CREATE or XATTR_REPLACE of setxattr(2), or 0.
  /// - Throws: `Failure`; EOPNOTSUPP outside `user.`, EEXIST, ENODATA, ENOSPC beyond the bound of all a file's attributes.
  package func setExtendedAttribute(
    _ name: ByteString, to value: [UInt8]?, of inode: UInt64, flags: CInt, _ caller: Caller
  ) throws(Failure) {
    guard caller.lane > .fast else { throw .takesTime }
    let node = try node(inode)
    let queue = try writable("\(node.place)")
    guard name.hasPrefix("user.") else {
      throw Failure(.notSupported, "\(node.place): only attributes in user. are kept")
    }
    if name.hasPrefix(Self.attributePrefix) {
      if name == Self.attributePrefix + "pin" {
        throw Failure(.notSupported, "\(node.place): files cannot be pinned")
      }
      // Programs that copy a file may set on the copy what the original has said of itself.
      if name == Self.attributePrefix + "retry", case .object(let object) = node.place {
        queue.retry(object)
      }
      return
    }
    let known = setAttributes(of: node)[name]
    if value == nil, known == nil {
      throw Failure(.noAttribute, "\(node.place): no attribute \(name)")
    }
    // XATTR_CREATE and XATTR_REPLACE of linux/xattr.h.
    if flags & 1 != 0, known != nil { throw Failure(.exists, "\(node.place): has \(name)") }
    if flags & 2 != 0, known == nil {
      throw Failure(.noAttribute, "\(node.place): no attribute \(name)")
    }
    if case .object(let object) = node.place {
      let isPending = try setPending(object) { () throws(Errno) in
        try queue.setAttribute(name, value, of: object)
      }
      if isPending { return }
    }
    let line = try line(of: node, inode, caller)
    var extended = kept(of: node.place, line)?.extended ?? [:]
    extended[name] = value
    let bytes = extended.reduce(0) { $0 + $1.key.count + $1.value.count }
    guard bytes <= PendingQueue.attributeLimit else {
      throw Failure(.noSpace, "\(node.place): more attributes than are kept")
    }
    set(of: node.place, line) { $0.extended = extended }
  }

  /// The extended attributes that programs have set.
  func setAttributes(of node: Node) -> [ByteString: [UInt8]] {
    if case .object(let object) = node.place, let queue, !queue.isEmpty,
      let pending = queue.entry(for: object)
    {
      return pending.record.attributes
    }
    let line: ListingEntry? =
      switch node.place {
      case .object(let object): listings.kept(FolderName(containing: object))?.entry(node.name)
      case .folder: nil
      }
    return kept(of: node.place, line)?.extended ?? [:]
  }
}
