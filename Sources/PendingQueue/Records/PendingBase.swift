/// What the store had under a record's name when the change began.
///
/// Compared with the store before anything is replaced there.
package enum PendingBase: Hashable, Sendable {
  /// Nothing: the file is new.
  case absent
  /// An object, by what was known of it. The version decides where both sides know one, else the
  /// tag; with neither, any object there counts as another one.
  case object(version: String?, tag: String?)
}
