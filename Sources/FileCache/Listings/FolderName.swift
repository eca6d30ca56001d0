package import BucketStore
package import Platform

/// A folder's full name: its bucket and the prefix that the keys in it share.
package struct FolderName: Hashable, Sendable, CustomStringConvertible {
  /// Empty for the folder of all buckets, which no store has as such.
  package let bucket: ByteString
  /// Bytes of the store's keys, ending in `/`; empty for the bucket itself.
  package let prefix: ByteString

  package init(bucket: ByteString, prefix: ByteString = ByteString()) {
    self.bucket = bucket
    self.prefix = prefix
  }

  /// The folder that an object lies in.
  package init(containing object: ObjectName) {
    bucket = object.bucket
    let cut = object.key.bytes.lastIndex(of: ByteString.slash)
    prefix = ByteString(cut.map { object.key.bytes[...$0] } ?? [])
  }

  /// The folder of all buckets.
  package static let buckets = FolderName(bucket: ByteString())

  /// Whether it is the folder of all buckets.
  package var isBuckets: Bool { bucket.isEmpty }
  /// Whether it is the top folder of one bucket.
  package var isBucket: Bool { !bucket.isEmpty && prefix.isEmpty }

  /// The folder right below, by the segment of the key that names it.
  package func folder(_ segment: ByteString) -> FolderName {
    if isBuckets { return FolderName(bucket: segment) }
    return FolderName(
      bucket: bucket, prefix: ByteString(prefix.bytes + segment.bytes + [ByteString.slash]))
  }

  /// The object right below, by the segment of the key that names it.
  package func object(_ segment: ByteString) -> ObjectName {
    ObjectName(bucket: bucket, key: prefix + segment)
  }

  /// The folder right above; nil for the folder of all buckets.
  package var parent: FolderName? {
    if isBuckets { return nil }
    if prefix.isEmpty { return .buckets }
    let path = prefix.bytes.dropLast()
    guard let cut = path.lastIndex(of: ByteString.slash) else { return FolderName(bucket: bucket) }
    return FolderName(bucket: bucket, prefix: ByteString(path[...cut]))
  }

  /// The last segment of the key, as the store spells it; empty for the folder of all buckets.
  package var segment: ByteString {
    if prefix.isEmpty { return bucket }
    let path = prefix.bytes.dropLast()
    guard let cut = path.lastIndex(of: ByteString.slash) else { return ByteString(path) }
    return ByteString(path[(cut + 1)...])
  }

  /// Whether another folder is this one or lies anywhere beneath.
  package func contains(_ other: FolderName) -> Bool {
    isBuckets || (bucket == other.bucket && other.prefix.hasPrefix(prefix))
  }

  package var description: String {
    if isBuckets { return "the list of buckets" }
    return "\(bucket)/\(prefix)"
  }
}
