import FileCache
import Platform

/// What this device has changed at the store, until a listing that was asked for later shows it.
///
/// A listing that was on its way while a file was stored, or one that is kept, does not know of it:
/// without this a name would vanish for a moment. A value; its owner guards it.
struct RecentChanges: Sendable {
  struct Change: Sendable {
    /// Nil for a name that is gone.
    let entry: ListingEntry?
    /// When the store had it done. A listing that was asked for after that knows better.
    let at: Timestamp
  }

  private var changes: [FolderName: [ByteString: Change]] = [:]
  private var count = 0

  /// No listing takes longer than this to come in.
  static let memory = Span.seconds(600)
  /// At each so many changes old ones are put into the listings themselves.
  private static let crowd = 1024

  var isEmpty: Bool { changes.isEmpty }

  /// - Returns: whether there are so many that they should be thinned out.
  mutating func set(_ name: ByteString, in folder: FolderName, _ entry: ListingEntry?) -> Bool {
    let old = changes[folder, default: [:]].updateValue(
      Change(entry: entry, at: .now), forKey: name)
    if old == nil { count += 1 }
    return count % Self.crowd == 0
  }

  /// Lets a name count as gone just now that is gone: listings asked for since may show it.
  mutating func renew(_ name: ByteString, in folder: FolderName) {
    guard let change = changes[folder]?[name], change.entry == nil else { return }
    changes[folder]?[name] = Change(entry: nil, at: .now)
  }

  /// Whether a name was removed here a while ago at most, and nothing was heard of it since.
  func isGone(_ name: ByteString, in folder: FolderName) -> Bool {
    guard let change = changes[folder]?[name] else { return false }
    return change.entry == nil && Timestamp.now.since(change.at) < Self.memory
  }

  /// The store has said something newer of a name.
  mutating func forget(_ name: ByteString, in folder: FolderName) {
    guard changes[folder]?.removeValue(forKey: name) != nil else { return }
    count -= 1
    if changes[folder]?.isEmpty ?? false { changes[folder] = nil }
  }

  /// The change of a name that a listing asked for at a moment may not show.
  func change(_ name: ByteString, in folder: FolderName, since asked: Timestamp) -> Change? {
    guard let change = changes[folder]?[name], change.at >= asked else { return nil }
    return change
  }

  /// All changes of a folder that a listing asked for at a moment may not show.
  func changes(in folder: FolderName, since asked: Timestamp) -> [ByteString: ListingEntry?] {
    guard let all = changes[folder] else { return [:] }
    return all.compactMapValues { $0.at >= asked ? .some($0.entry) : nil }
  }

  /// Takes out what is older than any listing that may still come in.
  mutating func takeOld(in folder: FolderName, before moment: Timestamp) -> [ByteString: Change] {
    guard let all = changes[folder] else { return [:] }
    let old = all.filter { $0.value.at < moment }
    let rest = all.filter { $0.value.at >= moment }
    changes[folder] = rest.isEmpty ? nil : rest
    count -= old.count
    return old
  }

  /// The folders that have changes.
  var folders: [FolderName] { Array(changes.keys) }
}
