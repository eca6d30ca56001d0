import BucketStore
import Platform

/// What a copy's file says of itself, in an extended attribute, for when the index is lost.
///
/// Fields, each as `<length>:<bytes>,`: `2` (the format), bucket, key, size, tag, version, time in
/// the store, content type, time of the download, `1` when the bytes matched the store's checksum,
/// and their SHA-256 where the tag is not their MD5. What is not known is empty.
struct CopyIdentity: Equatable {
  static let attribute = "user.bucketfs.copy"

  var object: ObjectName
  var facts: ObjectFacts
  var fetched: Timestamp
  var isVerified: Bool
  var sha256: String?

  init(
    object: ObjectName, facts: ObjectFacts, fetched: Timestamp, isVerified: Bool, sha256: String?
  ) {
    self.object = object
    self.facts = facts
    self.fetched = fetched
    self.isVerified = isVerified
    self.sha256 = sha256
  }

  var encoded: [UInt8] {
    let modified = facts.modified.map { String($0.nanoseconds) } ?? ""
    let head: [[UInt8]] = [Array("2".utf8), object.bucket.bytes, object.key.bytes]
    let rest = [
      String(facts.size), facts.tag ?? "", facts.version ?? "", modified,
      facts.contentType ?? "", String(fetched.nanoseconds), isVerified ? "1" : "", sha256 ?? "",
    ]
    return (head + rest.map { Array($0.utf8) }).flatMap { field in
      Array("\(field.count):".utf8) + field + [UInt8(ascii: ",")]
    }
  }

  /// Reads what `encoded` gave.
  ///
  /// - Returns: nil when it is not that.
  init?(encoded bytes: [UInt8]) {
    guard let fields = Self.fields(of: bytes), fields.count == 11, fields[0] == Array("2".utf8)
    else { return nil }
    let text = fields.map { String(decoding: $0, as: UTF8.self) }
    guard let size = Int64(text[3]), let fetched = Int64(text[8]) else { return nil }
    object = ObjectName(bucket: ByteString(fields[1]), key: ByteString(fields[2]))
    facts = ObjectFacts(
      size: size, tag: text[4].isEmpty ? nil : text[4],
      version: text[5].isEmpty ? nil : text[5],
      modified: Int64(text[6]).map { Timestamp(nanoseconds: $0) },
      contentType: text[7].isEmpty ? nil : text[7])
    self.fetched = Timestamp(nanoseconds: fetched)
    isVerified = text[9] == "1"
    sha256 = text[10].isEmpty ? nil : text[10]
  }

  private static func fields(of bytes: [UInt8]) -> [[UInt8]]? {
    var fields: [[UInt8]] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard let colon = rest.firstIndex(of: UInt8(ascii: ":")),
        let count = Int(String(decoding: rest[..<colon], as: UTF8.self)), count >= 0,
        count < rest.endIndex - colon - 1
      else { return nil }
      let start = colon + 1
      guard rest[start + count] == UInt8(ascii: ",") else { return nil }
      fields.append(Array(rest[start..<(start + count)]))
      rest = rest[(start + count + 1)...]
    }
    return fields
  }
}
