import FileCache
import Platform

/// What the kernel refers to by an inode number.
struct Node: Sendable {
  let place: Place
  let parent: UInt64
  let name: ByteString
  /// How many answers named it that the kernel has not forgotten.
  var lookups: UInt64 = 0
  /// Open handles; they keep the node when the kernel has forgotten it.
  var opens = 0
}

/// The inodes that the kernel or an open handle refers to, and no others.
///
/// A value; its owner guards it.
struct NodeTable: Sendable {
  static let root: UInt64 = 1

  private var nodes: [UInt64: Node] = [:]
  /// Numbers of places that could not have the one of their hash.
  private var moved: [Place: UInt64] = [:]

  init(root place: Place) {
    nodes[Self.root] = Node(place: place, parent: Self.root, name: ByteString(), lookups: 1)
    moved[place] = Self.root
  }

  var count: Int { nodes.count }

  subscript(_ inode: UInt64) -> Node? {
    get { nodes[inode] }
    set { nodes[inode] = newValue }
  }

  /// The number that a place has, or would get now.
  func inode(of place: Place) -> UInt64 {
    if let inode = moved[place] { return inode }
    var inode = place.inodeHash
    while let node = nodes[inode], node.place != place { inode = Self.number(after: inode) }
    return inode
  }

  /// Counts one more answer that names a place.
  mutating func reference(_ place: Place, parent: UInt64, name: ByteString) -> UInt64 {
    let inode = inode(of: place)
    var node = nodes[inode] ?? Node(place: place, parent: parent, name: name)
    node.lookups += 1
    nodes[inode] = node
    if inode != place.inodeHash { moved[place] = inode }
    return inode
  }

  /// Takes answers back that the kernel has forgotten (FUSE_FORGET).
  mutating func forget(_ inode: UInt64, count: UInt64) {
    guard inode != Self.root, var node = nodes[inode] else { return }
    node.lookups -= min(count, node.lookups)
    nodes[inode] = node
    dropUnused(inode)
  }

  mutating func opened(_ inode: UInt64) {
    nodes[inode]?.opens += 1
  }

  mutating func closed(_ inode: UInt64) {
    guard let opens = nodes[inode]?.opens, opens > 0 else { return }
    nodes[inode]?.opens = opens - 1
    dropUnused(inode)
  }

  private mutating func dropUnused(_ inode: UInt64) {
    guard inode != Self.root, let node = nodes[inode], node.lookups == 0, node.opens == 0 else {
      return
    }
    nodes[inode] = nil
    if moved[node.place] == inode { moved[node.place] = nil }
  }

  private static func number(after inode: UInt64) -> UInt64 {
    let next = (inode &+ 1) & (.max >> 1)
    return next > root ? next : root + 1
  }
}
