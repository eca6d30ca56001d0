package import Platform

/// The facts of a file or folder that stat(2) shows.
package struct Attributes: Sendable, Equatable {
  /// Never given to another file during a mount.
  package var inode: UInt64
  /// A folder, else a regular file: there is nothing else.
  package var isDirectory: Bool
  /// Bytes; 0 for a folder.
  package var size: Int64
  /// When the object was last written, by the store's clock; for a folder, when a change in it was
  /// last noticed. Stands for atime and ctime too.
  package var modified: Timestamp
  /// The type bits of S_IFMT and the permission bits, as `st_mode` has them.
  package var mode: UInt32
  /// 0 for what is open and has lost its name, else 1. For a folder that means "number of subfolders not known" (as on Btrfs), so that
  /// find(1) does not conclude from 2 that there are none.
  package var links: UInt32
  /// The owner, which is the mount's.
  package var uid: UInt32
  /// The group, which is the mount's.
  package var gid: UInt32
  /// Units of 512 bytes that the content fills, so that du(1) tells the store's size.
  package var blocks: UInt64
}

/// A file or folder as the kernel keeps it, and for how long it may.
package struct Entry: Sendable, Equatable {
  /// The facts as of the answer.
  package var attributes: Attributes
  /// How long the kernel may trust that the name leads here.
  package var entryTimeout: Span
  /// How long the kernel may trust the attributes.
  package var attributesTimeout: Span

  /// The number that later calls name it by.
  package var inode: UInt64 { attributes.inode }
}

/// What a name led to.
package enum Lookup: Sendable, Equatable {
  case found(Entry)
  /// There is no such name, and the kernel may believe that for a while: zero means ask again.
  case missing(timeout: Span)
}
