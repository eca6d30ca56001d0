import BucketStore
package import Platform
import SQLite

/// Gathers what a store's pages say of one folder, in any order, into a listing.
package struct ListingBuilder {
  let folder: FolderName
  private let names: KeyNames
  private var table = ListingTable()
  private var hiddenKeys: Set<ByteString> = []
  /// Whether anything was seen at all, hidden keys and the mark of an empty folder included.
  private(set) var isProven = false

  init(_ folder: FolderName, names: KeyNames) {
    self.folder = folder
    self.names = names
  }

  /// The object that keeps a folder which would otherwise be empty; never shown.
  package static let placeholder: ByteString = ".emptyFolderPlaceholder"

  /// The kind of a row that holds a key which cannot be shown.
  static let hiddenKind: UInt8 = 3

  /// Adds a row of the index: name, kind, size, tag, modified, type.
  mutating func add(_ row: Row) {
    isProven = true
    let segment = row.name(0)
    let kind = UInt8(truncatingIfNeeded: row.integer(1))
    guard kind != Self.hiddenKind else {
      hiddenKeys.insert(segment)
      return
    }
    guard let kind = ListingEntry.Kind(rawValue: kind), let name = names.name(of: segment) else {
      return
    }
    table.append(
      ListingEntry(
        name: name, kind: kind, size: row.integerOrNull(2), tag: row.textOrNull(3),
        modified: row.timeOrNull(4), contentType: row.textOrNull(5)))
  }

  /// Adds an object that lies right in the folder.
  mutating func add(_ object: ObjectInfo) {
    isProven = true
    let segment = object.key.dropFirst(folder.prefix.count)
    // The folder's own mark: `dir/` as an empty object, or the placeholder in it.
    if segment.isEmpty || segment == Self.placeholder, object.size ?? 0 == 0 { return }
    guard let name = names.name(of: segment) else {
      hiddenKeys.insert(object.key)
      return
    }
    table.append(
      ListingEntry(
        name: name, kind: .file, size: object.size, tag: object.tag, modified: object.modified,
        contentType: object.contentType))
  }

  /// Adds a folder by the segment of the key that names it.
  mutating func add(
    folder segment: ByteString, kind: ListingEntry.Kind = .folder, modified: Timestamp? = nil
  ) {
    isProven = true
    guard let name = names.name(of: segment) else {
      hiddenKeys.insert(folder.folder(segment).prefix)
      return
    }
    table.append(ListingEntry(name: name, kind: kind, modified: modified))
  }

  /// Adds a key that cannot be shown in the folder or beneath; past a thousand they are not told
  /// one by one.
  mutating func add(hidden key: ByteString) {
    isProven = true
    if hiddenKeys.count < Self.hiddenLimit { hiddenKeys.insert(key) }
  }

  static let hiddenLimit = 1000

  /// Prefixes of folders that cannot be shown, whose keys are not known.
  var hiddenPrefixes: [ByteString] {
    hiddenKeys.filter { $0.bytes.last == ByteString.slash }.sorted()
  }

  /// Names the keys of a hidden prefix in its place.
  mutating func expand(_ prefix: ByteString, to keys: [ByteString]) {
    hiddenKeys.remove(prefix)
    for key in keys { add(hidden: key) }
  }

  /// The entries in order, each name once: of a file and a folder with one name, the folder.
  ///
  /// - Parameter before: the listing that this one replaces; folders keep the times it gave them.
  consuming func finish(
    fetchedAt: Timestamp, cost: Span, after before: Listing?, isPartial: Bool = false
  ) -> Listing {
    var (table, lost) = table.sorted()
    for name in lost {
      if let segment = names.segment(of: name) { hiddenKeys.insert(folder.prefix + segment) }
    }
    for index in 0..<table.count where table.kind(at: index) != .file {
      let known = before?.entry(table.name(at: index)).flatMap { $0.isFolder ? $0.modified : nil }
      table.setModified(known ?? table.modified(at: index) ?? fetchedAt, at: index)
    }
    return Listing(
      folder: folder, fetchedAt: fetchedAt, cost: cost, table: table,
      hiddenKeys: hiddenKeys.sorted(), isPartial: isPartial)
  }
}
