/// How much a cache holds.
package struct CacheUsage: Sendable, Equatable {
  /// Bytes of all copies, and of what is there of large objects.
  package let bytes: Int64
  /// The most bytes there may be; nil for no bound.
  package let limit: Int64?
  /// Copies, whole ones.
  package let files: Int

  package init(bytes: Int64, limit: Int64?, files: Int) {
    self.bytes = bytes
    self.limit = limit
    self.files = files
  }
}
