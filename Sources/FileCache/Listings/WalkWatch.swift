import Platform

/// Tells who walks over a tree from who opens a folder.
///
/// A walk is seen when a second folder is opened under the same parent, or a third level is reached,
/// each within a second of the last answer, as ls -R, find, du and rsync do. It is then answered by
/// flat listings of the whole subtree of the topmost folder of the chain: one request for each
/// thousand keys, where one for each folder takes 23 times as long at 40 ms a request.
///
/// A value; its owner guards it.
struct WalkWatch: Sendable {
  private struct Opened {
    /// The topmost folder of the chain that led here.
    var root: FolderName
    var depth: Int
    var touched: Instant
    var lastChild: FolderName?
    var isWalked = false
  }

  private var opened: [FolderName: Opened] = [:]
  private static let pause = Span.seconds(1)
  private static let limit = 4096

  /// Notes that a folder is opened.
  ///
  /// - Returns: the root of the walk that the folder belongs to; nil when there is none.
  mutating func opening(_ folder: FolderName, at now: Instant) -> FolderName? {
    if opened.count >= Self.limit {
      opened = opened.filter { now.since($0.value.touched) <= Self.pause }
    }
    guard !folder.isBuckets else { return nil }
    guard let parent = folder.parent, !parent.isBuckets, let above = opened[parent],
      now.since(above.touched) <= Self.pause
    else {
      let again = opened[folder].map { now.since($0.touched) <= Self.pause } ?? false
      if !again {
        opened[folder] = Opened(root: folder, depth: 0, touched: now, lastChild: nil)
      }
      return nil
    }
    let isSecond = above.lastChild != nil && above.lastChild != folder
    opened[parent]?.lastChild = folder
    opened[folder] = Opened(
      root: above.root, depth: above.depth + 1, touched: now, lastChild: nil)
    if isSecond || above.depth >= 1 { opened[above.root]?.isWalked = true }
    touch(folder, at: now)
    return opened[above.root]?.isWalked == true ? above.root : nil
  }

  /// Notes that a folder was answered, however long that took: the pause counts from here.
  mutating func served(_ folder: FolderName, at now: Instant) {
    touch(folder, at: now)
  }

  private mutating func touch(_ folder: FolderName, at now: Instant) {
    guard let root = opened[folder]?.root else { return }
    var next: FolderName? = folder
    while let name = next {
      opened[name]?.touched = now
      if name == root { return }
      next = name.parent
    }
  }
}
