/// Entity tags, as headers and JSON spell them.
enum EntityTag {
  /// The tag without the weak mark that a proxy may have put before it.
  static func strong(_ tag: String) -> String {
    tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag
  }
}
