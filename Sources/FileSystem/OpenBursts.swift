import FileCache
import Platform

/// Tells files that are opened one after the other in a folder from single ones.
///
/// A value; its owner guards it.
struct OpenBursts: Sendable {
  private var last: [FolderName: Instant] = [:]
  private static let pause = Span.seconds(1)
  private static let limit = 256

  /// Notes that a file in the folder is opened.
  ///
  /// - Returns: whether another one was, less than a second ago.
  mutating func opening(_ folder: FolderName) -> Bool {
    let now = Instant.now
    if last.count >= Self.limit { last = last.filter { now.since($0.value) < Self.pause } }
    if last.count >= Self.limit { last = [:] }
    let before = last.updateValue(now, forKey: folder)
    return before.map { now.since($0) < Self.pause } ?? false
  }
}
