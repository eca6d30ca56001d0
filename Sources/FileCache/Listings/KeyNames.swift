package import BucketStore
package import Platform

/// How the segments of the store's keys and the names that people see become one another.
package struct KeyNames: Sendable {
  private let shown: @Sendable (ByteString) -> ByteString
  private let stored: @Sendable (ByteString) -> ByteString?
  /// The segment of the empty object that keeps a folder which holds nothing else: empty where its
  /// key is the folder's own (`a/b/`).
  package let marker: ByteString

  /// - Parameters:
  ///   - shown: the name that a segment of a key is shown under.
  ///   - stored: the segment that holds a name; nil when the store can hold no such name.
  package init(
    shown: @escaping @Sendable (ByteString) -> ByteString,
    stored: @escaping @Sendable (ByteString) -> ByteString?,
    marker: ByteString = ListingBuilder.placeholder
  ) {
    self.shown = shown
    self.stored = stored
    self.marker = marker
  }

  /// As the store's own encoding has it.
  package init(_ encoding: KeyEncoding) {
    self.init(shown: { encoding.decode($0) }, stored: { encoding.encode($0) })
  }

  /// Names and segments are the same bytes.
  package static let verbatim = KeyNames(shown: { $0 }, stored: { $0 })

  /// As `verbatim`, where a folder is kept by an object with the folder's own key.
  package static let slashed = KeyNames(shown: { $0 }, stored: { $0 }, marker: ByteString())

  /// Whether a segment is that of an object which keeps a folder; never shown.
  package func isMarker(_ segment: ByteString) -> Bool {
    segment == marker || segment == ListingBuilder.placeholder
  }

  /// The segment of the key of a name; nil when it can be none.
  package func segment(of name: ByteString) -> ByteString? {
    Self.isName(name) ? stored(name) : nil
  }

  /// The name of a segment; nil when it cannot be shown, or only under a name that leads elsewhere.
  package func name(of segment: ByteString) -> ByteString? {
    let name = shown(segment)
    guard Self.isName(name), name.count <= Self.longestName, stored(name) == segment else {
      return nil
    }
    return name
  }

  /// The most bytes in a name (NAME_MAX).
  package static let longestName = 255

  /// Whether bytes can be one segment of a path: not empty, `.` or `..`, and without `/`, `\` and
  /// control characters.
  package static func isName(_ name: ByteString) -> Bool {
    if name.isEmpty || name == "." || name == ".." { return false }
    return !name.bytes.contains {
      $0 < 0x20 || $0 == 0x7F || $0 == ByteString.slash || $0 == UInt8(ascii: "\\")
    }
  }
}
