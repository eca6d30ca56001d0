package import Platform

/// How long listings are believed, and how many are kept.
package struct ListingOptions: Sendable {
  /// How long a listing is believed at least.
  package var maxAge: Span
  /// Bytes of kept listings; nil for no bound. What is below 4 KiB counts as 4 KiB.
  package var limit: Int64?
  /// How keys are shown as names.
  package var names: KeyNames

  package init(maxAge: Span, limit: Int64? = 100 << 20, names: KeyNames = .verbatim) {
    self.maxAge = maxAge
    self.limit = limit.map { max($0, 4096) }
    self.names = names
  }
}
