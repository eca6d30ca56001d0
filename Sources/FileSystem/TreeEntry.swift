import FileCache
import PendingQueue
import Platform

/// What a name of a folder is shown as: the store's line, or what is pending in its place.
struct TreeEntry: Sendable {
  /// Name, kind, size and time.
  var line: ListingEntry
  /// What is to be sent; nil for what the store has.
  var pending: PendingEntry?

  init(_ line: ListingEntry) {
    self.line = line
  }

  /// A file that the store does not have yet, as of now.
  init(_ pending: PendingEntry, name: ByteString) {
    line = ListingEntry(
      name: name, kind: .file, size: pending.size, modified: pending.modified,
      contentType: pending.record.contentType)
    self.pending = pending
  }

  var name: ByteString { line.name }
  var isFolder: Bool { line.isFolder }

  /// What tells a file's versions apart; nil for a folder.
  var facts: FileFacts? {
    if line.isFolder { return nil }
    return pending == nil ? FileFacts(line) : FileFacts(pendingSize: line.size, line.modified)
  }
}
