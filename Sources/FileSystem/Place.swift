import BucketStore
import FileCache
import Platform

/// What an inode stands for.
enum Place: Hashable, Sendable, CustomStringConvertible {
  case folder(FolderName)
  case object(ObjectName)

  /// The inode number of the place, the same at every mount on every device.
  ///
  /// FNV-1a over bucket, `/` and key (folders end in `/`), mixed by the finalizer of MurmurHash3,
  /// without its highest bit. Two of a million names share one with a chance of 1 in 20 million;
  /// the node table tells those apart while the kernel knows both.
  var inodeHash: UInt64 {
    let (bucket, key) =
      switch self {
      case .folder(let folder): (folder.bucket, folder.prefix)
      case .object(let object): (object.bucket, object.key)
      }
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func feed(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for byte in bucket.bytes { feed(byte) }
    feed(ByteString.slash)
    for byte in key.bytes { feed(byte) }
    hash ^= hash >> 33
    hash &*= 0xFF51_AFD7_ED55_8CCD
    hash ^= hash >> 33
    hash &*= 0xC4CE_B9FE_1A85_EC53
    hash ^= hash >> 33
    hash &= .max >> 1
    return hash > NodeTable.root ? hash : hash + 2
  }

  /// The folder that it is in, and its segment of the key there; a folder's ends in `/`. For the
  /// list of buckets itself both are as if it were in itself.
  var line: (folder: FolderName, name: ByteString) {
    switch self {
    case .object(let object):
      let folder = FolderName(containing: object)
      return (folder, object.key.dropFirst(folder.prefix.count))
    case .folder(let folder): return (folder.parent ?? .buckets, folder.segment + "/")
    }
  }

  var description: String {
    switch self {
    case .folder(let folder): folder.description
    case .object(let object): object.description
    }
  }
}
