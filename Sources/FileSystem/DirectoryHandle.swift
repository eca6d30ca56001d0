import FileCache
package import Platform

/// An open folder: what was in it when it was opened, `.` and `..` first.
///
/// It keeps its entries whatever happens to the folder, so that a reader sees each exactly once.
package final class DirectoryHandle: Sendable {
  /// The folder's inode.
  package let inode: UInt64
  let folder: FolderName
  let lines: MergedListing
  private let atFirst: Span
  private let openedAt = Instant.now
  private let own: Attributes
  private let parent: Attributes
  private let attributes: @Sendable (TreeEntry) -> Attributes
  private let onClose: @Sendable () -> Void
  private let isClosed = Locked(false)

  init(
    inode: UInt64, folder: FolderName, believed: Span, lines: MergedListing, own: Attributes,
    parent: Attributes, attributes: @escaping @Sendable (TreeEntry) -> Attributes,
    onClose: @escaping @Sendable () -> Void
  ) {
    self.inode = inode
    self.folder = folder
    atFirst = believed
    self.lines = lines
    self.own = own
    self.parent = parent
    self.attributes = attributes
    self.onClose = onClose
  }

  deinit { close() }

  /// How many entries there are, `.` and `..` included.
  package var count: Int { lines.count + 2 }

  /// How much longer its entries may be believed.
  var believed: Span {
    let left = atFirst.nanoseconds - Instant.now.since(openedAt).nanoseconds
    return Span(nanoseconds: max(left, 0))
  }

  /// The entry at a place, 0 being `.` and 1 being `..`.
  ///
  /// Reading goes on after an entry at the place that its cookie names.
  package subscript(_ index: Int) -> DirectoryEntry {
    let cookie = UInt64(index) + 1
    switch index {
    case 0: return DirectoryEntry(name: ".", attributes: own, cookie: cookie)
    case 1: return DirectoryEntry(name: "..", attributes: parent, cookie: cookie)
    default:
      let entry = lines[index - 2]
      return DirectoryEntry(name: entry.name, attributes: attributes(entry), cookie: cookie)
    }
  }

  /// Lets go of the entries (FUSE_RELEASEDIR); calling it again does nothing.
  package func close() {
    let isFirst = isClosed.withLock { closed in
      defer { closed = true }
      return !closed
    }
    if isFirst { onClose() }
  }
}

/// A line of an open folder.
package struct DirectoryEntry: Sendable, Equatable {
  /// As people see it; `.` and `..` included.
  package let name: ByteString
  /// Its inode number is the one that a lookup of the name would give now.
  package let attributes: Attributes
  /// Where reading goes on after this entry: the offset that readdir(3) gives to seekdir(3).
  package let cookie: UInt64
}
