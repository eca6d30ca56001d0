package import BucketStore
package import Platform

/// A file that was changed here and elsewhere: what another writer stored has the name, and ours
/// is stored beside it.
package struct ConflictCopy: Sendable, Equatable {
  /// When it was found out.
  package var at: Timestamp
  /// The name that both had.
  package var object: ObjectName
  /// The name that ours was given.
  package var copy: ObjectName
  /// Whose file it was here.
  var owner: String
}
