import Platform

/// Names that the kernel was told lead nowhere, and may go on believing so; the newest ones.
///
/// A value; its owner guards it.
struct MissingNames: Sendable {
  struct Name: Sendable {
    let parent: UInt64
    let name: ByteString
    /// When the kernel asks again by itself.
    let until: Instant
  }

  private var names: [Name] = []
  private var next = 0
  private static let limit = 4096

  mutating func add(_ name: ByteString, in parent: UInt64, believed: Span) {
    guard believed > .zero else { return }
    let entry = Name(parent: parent, name: name, until: .now + believed)
    if names.count < Self.limit {
      names.append(entry)
    } else {
      names[next] = entry
      next = (next + 1) % Self.limit
    }
  }

  /// Forgets all, and gives back those that the kernel still believes.
  mutating func takeAll() -> [Name] {
    defer {
      names = []
      next = 0
    }
    let now = Instant.now
    return names.filter { $0.until > now }
  }
}
