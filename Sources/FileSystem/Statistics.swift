/// What statfs(2) shows of the mount.
///
/// A store states no capacity: what is used is what the device knows of, what is free is the
/// device's room for copies.
package struct Statistics: Sendable, Equatable {
  /// Bytes; the unit of the block counts.
  package var blockSize: UInt32
  /// Blocks that are used and that are free together.
  package var blocks: UInt64
  /// Blocks that copies may still fill.
  package var freeBlocks: UInt64
  /// Files that the device knows of, and that there may still be, together.
  package var files: UInt64
  /// How many more files there may be.
  package var freeFiles: UInt64
  /// Bytes of one path segment.
  package var longestName: UInt32
}
