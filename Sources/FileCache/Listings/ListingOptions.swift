package import BucketStore
package import Platform

/// How long listings are believed, and how many are kept.
package struct ListingOptions: Sendable {
  /// How long a listing is believed at least.
  package var maxAge: Span
  /// Bytes of kept listings; nil for no bound. What is below 4 KiB counts as 4 KiB.
  package var limit: Int64?
  /// How keys are shown as names.
  package var names: KeyNames
  /// Buckets that are shown whether the store lists them or not.
  package var namedBuckets: [ByteString]
  /// The folder that is there though it may hold nothing: where the tree begins.
  package var root = FolderName.buckets
  /// Bytes of listings that are held in memory.
  package var memoryLimit: Int64
  /// Told of the objects that a listing names: it confirms copies of the same tag, size and time.
  package var confirm: @Sendable ([ObjectInfo], ByteString, Timestamp) -> Void

  package init(
    maxAge: Span, limit: Int64? = 100 << 20, names: KeyNames = .verbatim,
    namedBuckets: [ByteString] = [], memoryLimit: Int64 = 64 << 20,
    confirm: @escaping @Sendable ([ObjectInfo], ByteString, Timestamp) -> Void = { _, _, _ in }
  ) {
    self.maxAge = maxAge
    self.limit = limit.map { max($0, 4096) }
    self.names = names
    self.namedBuckets = namedBuckets
    self.memoryLimit = memoryLimit
    self.confirm = confirm
  }
}
