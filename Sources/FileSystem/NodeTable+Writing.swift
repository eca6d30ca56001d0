import BucketStore
import FileCache
import Platform

/// What writing does to inodes.
extension NodeTable {
  /// Opens what is pending under a node's place, whatever the kernel was told of it.
  ///
  /// The kernel's pages are of no use any more.
  /// - Parameter facts: of the pending file.
  /// - Returns: what the handles of the inode share; nil for an inode that is not known.
  mutating func open(_ inode: UInt64, pending facts: FileFacts) -> FileBody? {
    guard var node = nodes[inode] else { return nil }
    node.opens += 1
    node.learn(facts)
    node.pages = nil
    let body = node.body ?? FileBody()
    node.body = body
    nodes[inode] = node
    return body
  }

  /// What the handles of an open inode share.
  mutating func body(of inode: UInt64) -> FileBody? {
    guard let node = nodes[inode], node.opens > 0 else { return nil }
    let body = node.body ?? FileBody()
    nodes[inode]?.body = body
    return body
  }

  /// Notes that an inode's content is one of this device from now on.
  mutating func becomePending(_ inode: UInt64, _ facts: FileFacts) {
    nodes[inode]?.isHandedOver = false
    nodes[inode]?.told = facts
    nodes[inode]?.pages = nil
  }

  /// Notes that the store has what was pending under a place.
  mutating func handOver(_ place: Place, _ facts: FileFacts) {
    let inode = inode(of: place)
    nodes[inode]?.isHandedOver = true
    nodes[inode]?.told = facts
  }

  /// Notes that a name is gone; open handles keep the inode.
  mutating func unlink(_ place: Place) {
    let inode = inode(of: place)
    guard nodes[inode] != nil else { return }
    nodes[inode]?.isUnlinked = true
    detach(inode)
  }

  /// Gives an inode another name, in place of the one that is there, as rename(2) does.
  mutating func rename(_ source: Place, to target: Place, parent: UInt64, name: ByteString) {
    unlink(target)
    let inode = inode(of: source)
    guard var node = nodes[inode] else { return }
    if moved[source] == inode { moved[source] = nil }
    node.place = target
    node.parent = parent
    node.name = name
    nodes[inode] = node
    moved[target] = inode
  }

  /// Gives a folder another name, and with it all beneath.
  mutating func renameFolder(
    _ source: FolderName, to target: FolderName, parent: UInt64, name: ByteString
  ) {
    let below = nodes.filter { inode, node in
      guard inode != Self.root, !node.isDetached else { return false }
      return switch node.place {
      case .folder(let folder): folder != source && source.contains(folder)
      case .object(let object): source.contains(FolderName(containing: object))
      }
    }
    rename(.folder(source), to: .folder(target), parent: parent, name: name)
    for (_, node) in below {
      let place: Place =
        switch node.place {
        case .folder(let folder):
          .folder(
            FolderName(
              bucket: target.bucket,
              prefix: target.prefix + folder.prefix.dropFirst(source.prefix.count)))
        case .object(let object):
          .object(
            ObjectName(
              bucket: target.bucket,
              key: target.prefix + object.key.dropFirst(source.prefix.count)))
        }
      rename(node.place, to: place, parent: node.parent, name: node.name)
    }
  }
}
