import FoundationEssentials

/// The bodies of calls that write.
extension SupabaseJSON {
  /// The answer to an upload and a copy; `Key` is the bucket and the key.
  struct Stored: Decodable {
    var key: String

    enum CodingKeys: String, CodingKey {
      case key = "Key"
    }
  }

  /// The answer to a delete and a move.
  struct Done: Decodable {
    var message: String
  }

  /// A row that is gone.
  struct Removed: Decodable {
    var name: String
  }

  /// Exact keys, although the server calls them prefixes.
  struct RemoveBody: Encodable {
    var prefixes: [String]
  }

  struct TransferBody: Encodable {
    var bucket: String
    var source: String
    var target: String
    var targetBucket: String?

    enum CodingKeys: String, CodingKey {
      case bucket = "bucketId"
      case source = "sourceKey"
      case target = "destinationKey"
      case targetBucket = "destinationBucket"
    }
  }
}

/// Base64 of RFC 4648.
enum Base64Text {
  static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// The alphabet for URLs, with or without padding; nil for what is none.
  static func decodeURL(_ text: String) -> [UInt8]? {
    var common = text.filter { $0 != "=" }
      .replacing("-", with: "+").replacing("_", with: "/")
    common += String(repeating: "=", count: (4 - common.utf8.count % 4) % 4)
    return Data(base64Encoded: common).map { Array($0) }
  }
}
