import BucketStore
import FileCache
import FileSystem
import Platform
import TestSupport

extension Mounted {
  /// The whole program below the mount, as it is built for a person.
  static func fileSystem(_ store: any BucketStore, _ scratch: Scratch, _ maxAge: Span) throws
    -> FileSystem
  {
    var options = CacheOptions(
      directory: scratch.path("cache-\(UInt32.random(in: 0 ... .max))"), mountPoint: scratch.path,
      identity: "test")
    options.maxAge = maxAge
    return FileSystem(
      cache: try FileCache(options: options, store: store), store: store,
      options: FileSystemOptions(uid: 0, gid: 0))
  }
}
