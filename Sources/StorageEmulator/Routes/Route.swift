import Platform

/// Where a request goes: the call it makes, and the bucket and key in its path.
struct Route: Sendable {
  /// The groups by which faults and the request log name calls.
  enum Name: String, Sendable {
    case object, list, info, upload, tus, auth, bucket, move, copy, remove, sign, other
  }

  /// Who may read through a download or info route.
  enum Reader: Sendable {
    case authenticated
    case lenient
    case anyone
    case signed
  }

  /// What is asked of an upload in parts.
  enum Resuming: Sendable {
    case tell
    case append
    case discard
  }

  enum Call: Sendable {
    case download(Reader)
    case info(Reader)
    case listVersion1
    case listVersion2
    case upload
    case removeOne
    case removeMany
    case move
    case copy
    case signOne
    case signMany
    case signUpload
    case signedUpload
    case beginResumable
    case resumable(Resuming, String)
    case resumableOptions
    case buckets
    case bucket
    case createBucket
    case updateBucket
    case emptyBucket
    case deleteBucket
    case status
    case health
    case version
    case auth(String)
    case unknown
    /// The path has a percent sign that is not followed by two hexadecimal digits, or is no UTF-8.
    case malformed
  }

  var call: Call
  var name: Name
  /// Through the gateway, that is below /storage/v1 or /auth/v1.
  var isGateway: Bool
  var bucket: String?
  var key: ByteString?
  var query: Query
  /// The path below the base, as sent.
  var path: String
}

/// The decoded query of a request.
struct Query: Sendable {
  private let items: [(name: String, value: String)]

  init(_ text: Substring) {
    items = text.split(separator: "&").map { item in
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (Self.decode(parts[0]), parts.count > 1 ? Self.decode(parts[1]) : "")
    }
  }

  subscript(_ name: String) -> String? { items.first { $0.name == name }?.value }

  private static func decode(_ text: Substring) -> String {
    let spaced = text.utf8.map { $0 == UInt8(ascii: "+") ? 32 : $0 }
    return (Percent.decode(spaced) ?? ByteString(spaced)).text
  }
}
