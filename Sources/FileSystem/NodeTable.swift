import FileCache
import Platform

/// What the kernel refers to by an inode number.
struct Node: Sendable {
  var place: Place
  var parent: UInt64
  var name: ByteString
  /// How many answers named it that the kernel has not forgotten.
  var lookups: UInt64 = 0
  /// Open handles; they keep the node when the kernel has forgotten it.
  var opens = 0
  /// What the kernel was last told of a file.
  var told: FileFacts?
  /// The content that the kernel's pages are of; nil when it has none.
  var pages: UInt64?
  /// Open files of an older version keep this inode; the name leads to another one.
  var isDetached = false
  /// When an open was last refused with ESTALE.
  var refused: Instant?
  /// What all open handles share, where files can be written.
  var body: FileBody?
  /// Whether its pending bytes are the store's by now: what the queue still says of it is no news.
  var isHandedOver = false
  /// Removed here, or replaced: what is written to it is nobody's but its handles'.
  var isUnlinked = false

  init(place: Place, parent: UInt64, name: ByteString) {
    self.place = place
    self.parent = parent
    self.name = name
  }

  /// Takes news of its place in, unless they are old ones.
  mutating func learn(_ facts: FileFacts) {
    if facts.isPending && isHandedOver { return }
    told = facts
  }
}

/// The inodes that the kernel or an open handle refers to, and no others.
///
/// One inode is one version as long as it is open, as on a disk where a file is replaced by a
/// rename: the kernel's pages and size are the inode's, and so never of two versions.
///
/// A value; its owner guards it.
struct NodeTable: Sendable {
  static let root: UInt64 = 1

  var nodes: [UInt64: Node] = [:]
  /// Numbers of places that could not have the one of their hash.
  var moved: [Place: UInt64] = [:]

  init(root place: Place) {
    nodes[Self.root] = Node(place: place, parent: Self.root, name: ByteString())
    nodes[Self.root]?.lookups = 1
    moved[place] = Self.root
  }

  var count: Int { nodes.count }

  subscript(_ inode: UInt64) -> Node? { nodes[inode] }

  /// Inodes that the kernel knows, at most `count` of them.
  func known(_ count: Int) -> [UInt64] { Array(nodes.keys.prefix(count)) }

  /// The number that a place has, or would get now.
  func inode(of place: Place) -> UInt64 {
    if let inode = moved[place] { return inode }
    var inode = place.inodeHash
    while let node = nodes[inode], node.isDetached || node.place != place {
      inode = Self.number(after: inode)
    }
    return inode
  }

  /// The live node of a place.
  func node(of place: Place) -> (inode: UInt64, node: Node)? {
    let inode = inode(of: place)
    return nodes[inode].map { (inode, $0) }
  }

  /// Counts one more answer that names a place.
  ///
  /// - Parameter facts: what the answer tells of a file; nil for a folder.
  mutating func reference(
    _ place: Place, parent: UInt64, name: ByteString, facts: FileFacts?
  ) -> UInt64 {
    var inode = inode(of: place)
    if let facts, let node = nodes[inode], node.opens > 0, !facts.isPending,
      let told = node.told, !told.isVersion(of: facts)
    {
      detach(inode)
      inode = self.inode(of: place)
    }
    var node = nodes[inode] ?? Node(place: place, parent: parent, name: name)
    node.lookups += 1
    if let facts { node.learn(facts) }
    nodes[inode] = node
    if inode != place.inodeHash { moved[place] = inode }
    return inode
  }

  /// Notes what the kernel is told of a file whose inode it has.
  ///
  /// - Returns: what it may be told: the version that is open stays what the inode is of.
  mutating func tell(_ inode: UInt64, _ facts: FileFacts) -> FileFacts {
    guard let node = nodes[inode] else { return facts }
    if node.opens > 0 || node.isDetached, !facts.isPending, let told = node.told,
      !told.isVersion(of: facts)
    {
      return told
    }
    nodes[inode]?.learn(facts)
    return facts
  }

  /// Takes answers back that the kernel has forgotten (FUSE_FORGET).
  mutating func forget(_ inode: UInt64, count: UInt64) {
    guard inode != Self.root, let node = nodes[inode] else { return }
    nodes[inode]?.lookups = node.lookups - min(count, node.lookups)
    dropUnused(inode)
  }

  enum Opening: Sendable {
    case opened(keepsCache: Bool)
    /// The kernel has to look the name up anew first.
    case stale
    /// It has done so, and yet the version is another one again: what it knows must go at once.
    case renewed
    case unknown
  }

  /// Opens a file, if the version is the one that the kernel was told of.
  ///
  /// - Parameters:
  ///   - content: tells contents apart, within one run of the program.
  ///   - mayRefuse: whether `stale` is what the kernel will be told; else nothing is noted.
  mutating func open(
    _ inode: UInt64, _ facts: FileFacts, content: UInt64, mayRefuse: Bool = true
  ) -> Opening {
    guard let node = nodes[inode] else { return .unknown }
    if node.told.map({ $0.isVersion(of: facts) && $0.size == facts.size }) ?? true {
      nodes[inode]?.opens += 1
      nodes[inode]?.told = node.told ?? facts
      nodes[inode]?.pages = content
      return .opened(keepsCache: node.pages == content)
    }
    guard mayRefuse else { return .stale }
    let now = Instant.now
    if let refused = node.refused, now.since(refused) < Self.patience, node.opens == 0 {
      nodes[inode]?.opens = 1
      nodes[inode]?.told = facts
      nodes[inode]?.pages = content
      return .renewed
    }
    nodes[inode]?.refused = now
    return .stale
  }

  /// Within this time a second ESTALE could reach the person.
  private static let patience = Span.seconds(5)

  /// - Returns: what the handles shared, when this was the last one.
  mutating func closed(_ inode: UInt64) -> FileBody? {
    guard let opens = nodes[inode]?.opens, opens > 0 else { return nil }
    nodes[inode]?.opens = opens - 1
    guard opens == 1 else { return nil }
    let body = nodes[inode]?.body
    nodes[inode]?.body = nil
    dropUnused(inode)
    return body
  }

  /// Lets the open handles keep an inode whose place is another one's from now on.
  mutating func detach(_ inode: UInt64) {
    guard inode != Self.root, let place = nodes[inode]?.place else { return }
    nodes[inode]?.isDetached = true
    if moved[place] == inode { moved[place] = nil }
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
