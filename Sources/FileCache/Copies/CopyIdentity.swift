import BucketStore
import Platform

/// What a copy's file says of itself, in an extended attribute, for when the index is lost.
///
/// Fields, each as `<length>:<bytes>,`: `3` (the format), whose copy it is, bucket, key, size, tag, version, time in
/// the store, content type, time of the download, `1` when the bytes matched the store's checksum,
/// and their SHA-256 where the tag is not their MD5. What is not known is empty.
struct CopyIdentity: Equatable {
  static let attribute = "user.bucketfs.copy"

  /// As `CacheDirectory.owner`.
  var owner: String
  var object: ObjectName
  var facts: ObjectFacts
  var fetched: Timestamp
  var isVerified: Bool
  var sha256: String?

  init(
    owner: String, object: ObjectName, facts: ObjectFacts, fetched: Timestamp, isVerified: Bool,
    sha256: String?
  ) {
    self.owner = owner
    self.object = object
    self.facts = facts
    self.fetched = fetched
    self.isVerified = isVerified
    self.sha256 = sha256
  }

  var encoded: [UInt8] {
    let modified = facts.modified.map { String($0.nanoseconds) } ?? ""
    let head: [[UInt8]] = [
      Array("3".utf8), Array(owner.utf8), object.bucket.bytes, object.key.bytes,
    ]
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
    guard let fields = Self.fields(of: bytes), fields.count == 12, fields[0] == Array("3".utf8)
    else { return nil }
    let text = fields.map { String(decoding: $0, as: UTF8.self) }
    guard let size = Int64(text[4]), let fetched = Int64(text[9]) else { return nil }
    owner = text[1]
    object = ObjectName(bucket: ByteString(fields[2]), key: ByteString(fields[3]))
    facts = ObjectFacts(
      size: size, tag: text[5].isEmpty ? nil : text[5],
      version: text[6].isEmpty ? nil : text[6],
      modified: Int64(text[7]).map { Timestamp(nanoseconds: $0) },
      contentType: text[8].isEmpty ? nil : text[8])
    self.fetched = Timestamp(nanoseconds: fetched)
    isVerified = text[10] == "1"
    sha256 = text[11].isEmpty ? nil : text[11]
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
