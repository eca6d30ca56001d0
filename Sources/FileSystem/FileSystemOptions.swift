package import FileCache
package import Platform

/// How the tree looks to the person who mounts it.
package struct FileSystemOptions: Sendable {
  /// Owner of every file and folder.
  package var uid: UInt32
  /// Group of every file and folder.
  package var gid: UInt32
  /// Permission bits that are taken away.
  package var umask: UInt32
  /// Whether nothing can be changed: no write bits, and EROFS for who tries.
  package var readOnly: Bool
  /// The folder that is the mount's root: all buckets, one bucket, or a folder in it.
  package var root: FolderName
  /// Buckets that are shown whether the store lists them or not.
  package var namedBuckets: [ByteString]
  /// How keys are shown as names.
  package var names: KeyNames
  /// How long the store is waited for where something kept can answer in its stead.
  package var patience = Span.seconds(1)
  /// Whether a close(2) that leaves no writer waits until the store has the file.
  package var closeWaits = false
  /// Whether fsync(2) waits until the store has the file.
  package var syncWaits = false

  package init(
    uid: UInt32, gid: UInt32, umask: UInt32 = 0, readOnly: Bool = true,
    root: FolderName = .buckets, namedBuckets: [ByteString] = [], names: KeyNames = .verbatim
  ) {
    self.uid = uid
    self.gid = gid
    self.umask = umask
    self.readOnly = readOnly
    self.root = root
    self.namedBuckets = namedBuckets
    self.names = names
  }
}
