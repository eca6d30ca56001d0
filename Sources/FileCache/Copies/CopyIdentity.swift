import BucketStore
import Platform

/// What a copy's file says of itself, in an extended attribute, for when the index is lost.
///
/// Fields, each as `<length>:<bytes>,`: `1` (the format), boot id, bucket, key, size, time of the
/// last change in nanoseconds, tag, version, time in the store, content type, time of the download,
/// and `1` when the bytes matched the store's checksum. What is not known is empty.
struct CopyIdentity: Equatable {
  static let attribute = "user.bucketfs.copy"

  var boot: String
  var object: ObjectName
  var stamp: FileStamp
  var facts: ObjectFacts
  var fetched: Timestamp
  var isVerified: Bool

  init(
    object: ObjectName, stamp: FileStamp, facts: ObjectFacts, fetched: Timestamp, isVerified: Bool
  ) {
    self.boot = Boot.current
    self.object = object
    self.stamp = stamp
    self.facts = facts
    self.fetched = fetched
    self.isVerified = isVerified
  }

  var encoded: [UInt8] {
    let modified = facts.modified.map { String($0.nanoseconds) } ?? ""
    let head: [[UInt8]] = [
      Array("1".utf8), Array(boot.utf8), object.bucket.bytes, object.key.bytes,
    ]
    let rest = [
      String(stamp.size), String(stamp.written.nanoseconds), facts.tag ?? "",
      facts.version ?? "", modified, facts.contentType ?? "", String(fetched.nanoseconds),
      isVerified ? "1" : "",
    ]
    return (head + rest.map { Array($0.utf8) }).flatMap { field in
      Array("\(field.count):".utf8) + field + [UInt8(ascii: ",")]
    }
  }

  /// Reads what `encoded` gave.
  ///
  /// - Parameter inode: of the file that says so; the attribute does not hold it.
  /// - Returns: nil when it is not that.
  init?(encoded bytes: [UInt8], inode: Int64) {
    guard let fields = Self.fields(of: bytes), fields.count == 12, fields[0] == Array("1".utf8)
    else { return nil }
    let text = fields.map { String(decoding: $0, as: UTF8.self) }
    guard let size = Int64(text[4]), let written = Int64(text[5]), let fetched = Int64(text[10])
    else { return nil }
    boot = text[1]
    object = ObjectName(bucket: ByteString(fields[2]), key: ByteString(fields[3]))
    stamp = FileStamp(size: size, inode: inode, written: Timestamp(nanoseconds: written))
    facts = ObjectFacts(
      size: size, tag: text[6].isEmpty ? nil : text[6],
      version: text[7].isEmpty ? nil : text[7],
      modified: Int64(text[8]).map { Timestamp(nanoseconds: $0) },
      contentType: text[9].isEmpty ? nil : text[9])
    self.fetched = Timestamp(nanoseconds: fetched)
    isVerified = text[11] == "1"
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
