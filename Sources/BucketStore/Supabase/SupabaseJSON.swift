import FoundationEssentials
import Platform

/// The bodies of the server's answers, as far as they are of use, and of our requests.
enum SupabaseJSON {
  struct Bucket: Decodable {
    var id: String
    var created: String?

    enum CodingKeys: String, CodingKey {
      case id
      case created = "created_at"
    }
  }

  /// The info call. Its `metadata` is the user's own, where a listing's is the system's.
  struct Info: Decodable {
    var name: String
    var version: String?
    var size: Int64?
    var tag: String?
    var contentType: String?
    var metadata: UserMetadata?
    /// The row's time of change, the `updated_at` of listings.
    var modified: String?

    enum CodingKeys: String, CodingKey {
      case name
      case version
      case size
      case tag = "etag"
      case contentType = "content_type"
      case metadata
      case modified = "last_modified"
    }
  }

  /// A row of a listing: an object, or a folder, which has no id.
  struct Row: Decodable {
    var name: String
    var id: String?
    var modified: String?
    var metadata: SystemMetadata?

    enum CodingKeys: String, CodingKey {
      case name
      case id
      case modified = "updated_at"
      case metadata
    }

    /// The facts, under the key given: the two listings name their rows differently.
    ///
    /// A row without metadata was made by hand in the database: its size is not known.
    func info(_ key: ByteString) -> ObjectInfo {
      ObjectInfo(
        key: key, size: metadata?.size.flatMap { $0 < 0 ? nil : $0 },
        tag: metadata?.tag.map(EntityTag.strong),
        modified: modified.flatMap { Timestamp(iso8601: $0) }, contentType: metadata?.type)
    }
  }

  struct SystemMetadata: Decodable {
    var tag: String?
    var size: Int64?
    var type: String?

    enum CodingKeys: String, CodingKey {
      case tag = "eTag"
      case size
      case type = "mimetype"
    }
  }

  /// A page of the listing of version 2.
  struct Page: Decodable {
    var hasNext: Bool
    var nextCursor: String?
    var folders: [Folder]
    var objects: [Row]
  }

  struct Folder: Decodable {
    var name: String
  }

  /// The user's metadata: texts stay, other values of one piece become their text.
  struct UserMetadata: Decodable {
    var texts: [String: String] = [:]

    init(from decoder: any Decoder) throws {
      let members = try decoder.container(keyedBy: AnyKey.self)
      for member in members.allKeys {
        if let text = try? members.decode(String.self, forKey: member) {
          texts[member.stringValue] = text
        } else if let flag = try? members.decode(Bool.self, forKey: member) {
          texts[member.stringValue] = flag ? "true" : "false"
        } else if let number = try? members.decode(Int64.self, forKey: member) {
          texts[member.stringValue] = String(number)
        } else if let number = try? members.decode(Double.self, forKey: member) {
          texts[member.stringValue] = String(number)
        }
      }
    }

    private struct AnyKey: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }

      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
  }

  struct ListBody: Encodable {
    var prefix: String
    var limit: Int
    var cursor: String?
    var delimited: Bool

    enum CodingKeys: String, CodingKey {
      case prefix
      case limit
      case cursor
      case delimited = "with_delimiter"
    }
  }

  struct OldListBody: Encodable {
    var prefix: String
    var limit: Int
    var offset: Int
    var search: String?
    var sortBy: SortBy

    struct SortBy: Encodable {
      var column: String
      var order = "asc"
    }
  }

  struct SignBody: Encodable {
    var expiresIn = 60
    var paths: [String]
  }

  struct Signed: Decodable {
    var path: String
    var error: String?
    var signedURL: String?
  }

  /// - Throws: `StoreError` of kind `server`: a success whose body is something else is no answer
  ///   of the store (a captive portal's page, say).
  static func decode<Value: Decodable>(_ type: Value.Type, from response: HTTPResponse)
    throws(StoreError) -> Value
  {
    do {
      return try JSONDecoder().decode(type, from: Data(response.body))
    } catch {
      throw StoreError(
        .server, "an answer that is not the store's own (HTTP \(response.status), unknown body)")
    }
  }

  static func encode(_ value: some Encodable) throws(StoreError) -> [UInt8] {
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      return Array(try encoder.encode(value))
    } catch {
      throw StoreError(.server, "the request cannot be written as JSON")
    }
  }
}
