/// Entity tags, as headers, listings and JSON spell them.
package enum EntityTag {
  /// Whether two tags are of one version.
  ///
  /// Only some of a store's answers tell that a tag is no digest: the mark makes no difference.
  package static func areSame(_ left: String?, _ right: String?) -> Bool {
    left == right || left.map(unmarked) == right.map(unmarked)
  }

  /// The tag as the store knows it.
  package static func unmarked(_ tag: String) -> String {
    tag.hasSuffix(mark) ? tag.dropLast(mark.count) + "\"" : tag
  }

  /// The tag of an object whose tag looks like a digest of its bytes and is none.
  ///
  /// The mark goes where S3 writes the number of parts.
  static func marked(_ tag: String) -> String {
    tag.hasSuffix("\"") && tag.utf8.count == 34 ? tag.dropLast() + mark : tag
  }

  private static let mark = "-encrypted\""

  /// The tag without the weak mark that a proxy may have put before it.
  static func strong(_ tag: String) -> String {
    tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag
  }
}
