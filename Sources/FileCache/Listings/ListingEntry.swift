package import Platform

/// One line of a listing: a file or folder by the name that people see.
package struct ListingEntry: Sendable, Equatable {
  /// What a line leads to; the raw value is the one that the index keeps.
  package enum Kind: UInt8, Sendable {
    case file = 0
    case folder = 1
    /// A bucket that the store does not list, yet answers for when asked by its name.
    case unlistedBucket = 2
  }

  /// One path segment, decoded.
  package var name: ByteString
  /// What the name leads to.
  package var kind: Kind
  /// Bytes; nil for folders, and where the store does not know.
  package var size: Int64?
  /// The object's entity tag; nil for folders, and where the store does not say.
  package var tag: String?
  /// When the object was last written; for a folder, when a change in it was last noticed.
  package var modified: Timestamp?
  /// The object's media type; nil for folders, and where the store does not say.
  package var contentType: String?

  package init(
    name: ByteString, kind: Kind, size: Int64? = nil, tag: String? = nil,
    modified: Timestamp? = nil, contentType: String? = nil
  ) {
    self.name = name
    self.kind = kind
    self.size = size
    self.tag = tag
    self.modified = modified
    self.contentType = contentType
  }

  /// Whether it can be listed: a folder, or a bucket of either kind.
  package var isFolder: Bool { kind != .file }
}
