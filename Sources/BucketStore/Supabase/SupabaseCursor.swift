import FoundationEssentials
import Platform

/// Where a page of the server's listing ended, and which names were looked up beyond it.
struct SupabaseCursor: Sendable, Equatable {
  /// The names after an object F up to and with the folder `F/`.
  struct Gap: Sendable, Equatable {
    var after: ByteString

    func contains(_ name: ByteString) -> Bool { after < name && name <= after + "/" }
  }

  /// The server's own cursor.
  var server: String
  /// What earlier pages have told already.
  var covered: Gap?

  init(server: String, covered: Gap?) {
    self.server = server
    self.covered = covered
  }

  /// - Throws: `StoreError` of kind `server` when the cursor is none of ours.
  init(_ cursor: ListCursor) throws(StoreError) {
    let parts = cursor.text.split(separator: " ", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count),
      let server = Percent.decode(parts[0].utf8)?.string
    else { throw StoreError(.server, "the listing's cursor is not one of this store") }
    self.server = server
    if parts.count == 2 {
      guard let name = Percent.decode(parts[1].utf8) else {
        throw StoreError(.server, "the listing's cursor is not one of this store")
      }
      covered = Gap(after: name)
    }
  }

  var cursor: ListCursor {
    let server = Percent.encode(ByteString(server))
    return ListCursor(covered.map { "\(server) \(Percent.encode($0.after))" } ?? server)
  }

  /// A server's cursor behind a name: its form is base64 of `l:<last name>`.
  static func beyond(_ name: ByteString) -> String? {
    name.string.map { Data("l:\($0)".utf8).base64EncodedString() }
  }
}
