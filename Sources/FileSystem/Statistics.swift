/// What statfs(2) shows of the mount.
///
/// A store states no capacity: what is used is what the device knows of, what is free is the
/// device's room for copies.
package struct Statistics: Sendable, Equatable {
  /// Bytes; the unit of the block counts.
  package var blockSize: UInt32
  package var blocks: UInt64
  package var freeBlocks: UInt64
  package var files: UInt64
  /// How many more files there may be.
  package var freeFiles: UInt64
  package var longestName: UInt32
}
