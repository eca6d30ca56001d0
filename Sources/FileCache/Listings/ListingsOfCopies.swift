import BucketStore
import Platform
import SQLite

/// Listings made of the copies that are kept, for when the index was lost: without them no name
/// would lead to a copy until the store has listed the folder again.
enum ListingsOfCopies {
  private struct Entry {
    let kind: ListingEntry.Kind
    let facts: ObjectFacts?
  }

  private typealias Folder = [ByteString: Entry]

  /// Writes a partial listing for each folder on the way to a copy, where none is kept.
  static func save(_ copies: [ObjectName: Copy], in connection: inout Connection)
    throws(DatabaseError)
  {
    for (folder, entries) in folders(of: copies) {
      let isKept = try connection.first(
        "SELECT 1 FROM listings WHERE bucket = ? AND prefix = ? AND complete = 1",
        .name(folder.bucket), .name(folder.prefix)
      ) { _ in true }
      if isKept == nil { try save(entries, of: folder, in: &connection) }
    }
  }

  private static func folders(of copies: [ObjectName: Copy]) -> [FolderName: Folder] {
    var folders: [FolderName: Folder] = [:]
    for (object, copy) in copies {
      let segments = object.key.split(at: ByteString.slash)
      guard KeyNames.isName(object.bucket), segments.allSatisfy(KeyNames.isName) else { continue }
      var folder = FolderName.buckets
      for segment in [object.bucket] + segments.dropLast() {
        folders[folder, default: [:]][segment] = Entry(kind: .folder, facts: nil)
        folder = folder.folder(segment)
      }
      guard let last = segments.last, folders[folder]?[last]?.kind != .folder else { continue }
      folders[folder, default: [:]][last] = Entry(kind: .file, facts: copy.facts)
    }
    return folders
  }

  private static func save(
    _ entries: Folder, of folder: FolderName, in connection: inout Connection
  ) throws(DatabaseError) {
    let bytes = entries.reduce(300) { $0 + $1.key.count + 120 }
    try connection.run(
      "INSERT INTO listings (bucket, prefix, fetched, cost, bytes, hidden, complete, partial) "
        + "VALUES (?, ?, 0, 0, ?, 0, 1, 1)",
      .name(folder.bucket), .name(folder.prefix), .integer(Int64(bytes)))
    let id = connection.lastRowID
    for (segment, entry) in entries {
      try connection.run(
        "INSERT INTO entries (listing, name, kind, size, tag, modified, type) "
          + "VALUES (?, ?, ?, ?, ?, ?, ?)",
        .integer(id), .name(segment), .integer(Int64(entry.kind.rawValue)),
        .integer(orNull: entry.facts?.size), .text(orNull: entry.facts?.tag),
        .time(orNull: entry.facts?.modified), .text(orNull: entry.facts?.contentType))
    }
  }
}
