import BucketStore
package import Platform

/// The version of an object that a listing has shown.
package struct ListedVersion: Sendable, Equatable {
  /// The entity tag, as the listing spells it.
  package let tag: String
  /// When it was written.
  package let modified: Timestamp?

  package init(tag: String, modified: Timestamp?) {
    self.tag = tag
    self.modified = modified
  }

  /// Whether an answer is of an older version than this one.
  ///
  /// - Parameter modified: when that version was written; without it, another tag is an older one.
  func isNewer(than tag: String?, _ modified: Timestamp?) -> Bool {
    guard let tag, !EntityTag.areSame(tag, self.tag) else { return false }
    guard let modified, let own = self.modified else { return true }
    return modified < own
  }
}
