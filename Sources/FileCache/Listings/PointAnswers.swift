import Platform

/// What the store said of single names in folders that are too long to be listed for one name.
///
/// A value; its owner guards it.
struct PointAnswers: Sendable {
  private struct Answer {
    let entry: ListingEntry?
    let until: Instant
  }

  private var answers: [FolderName: [ByteString: Answer]] = [:]
  private var asked: [FolderName: Int] = [:]
  private var count = 0
  private static let limit = 8192

  /// The answer that still counts; nil when there is none, `.some(nil)` for "no such name".
  func entry(_ name: ByteString, in folder: FolderName, at now: Instant) -> (
    entry: ListingEntry?, believed: Span
  )? {
    guard let answer = answers[folder]?[name], answer.until > now else { return nil }
    return (answer.entry, answer.until.since(now))
  }

  mutating func set(
    _ name: ByteString, in folder: FolderName, _ entry: ListingEntry?, until: Instant
  ) {
    if count >= Self.limit {
      answers = [:]
      count = 0
    }
    count += 1
    answers[folder, default: [:]][name] = Answer(entry: entry, until: until)
  }

  /// Counts a question about a name.
  ///
  /// - Returns: how many there were since the folder was last listed.
  mutating func count(_ folder: FolderName) -> Int {
    if asked.count >= Self.limit { asked = [:] }
    asked[folder, default: 0] += 1
    return asked[folder] ?? 0
  }

  /// A listing says all that single answers said.
  mutating func forget(_ folder: FolderName) {
    count -= answers.removeValue(forKey: folder)?.count ?? 0
    asked[folder] = nil
  }
}
