package import Platform

/// How a cache is kept.
package struct CacheOptions: Sendable {
  /// The cache's own folder, absolute. Made when it is missing.
  package var directory: String
  /// Where the tree is mounted; named to whoever tries to use the cache meanwhile.
  package var mountPoint: String
  /// Whose copies these are: the store and the user. With another one all of them go.
  package var identity: String
  /// How long a copy counts as just confirmed; zero asks on every open.
  package var maxAge = Span.seconds(1)
  /// The most bytes that copies may take; nil for no bound, below zero counts as zero.
  package var cacheSize: Int64? = 256 << 20
  /// The most bytes that listings may take; nil for no bound.
  package var listingCacheSize: Int64? = 100 << 20
  /// Objects over this many bytes are fetched in parts, as they are read.
  package var partSize: Int64 = 8 << 20
  /// How long the store may stay silent in a transfer that no call of its own bounds.
  package var timeout = Span.seconds(10)
  /// How long closing the cache may spend on making what is new durable, file by file.
  package var closingTime = Span.seconds(2)
  /// How long a copy that was used stays out of eviction.
  package var grace = Span.seconds(30)

  package init(directory: String, mountPoint: String, identity: String) {
    self.directory = directory
    self.mountPoint = mountPoint
    self.identity = identity
  }
}
