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
    FileSystem(
      listings: Listings(store: store, options: ListingOptions(maxAge: maxAge)), store: store,
      options: FileSystemOptions(uid: 0, gid: 0))
  }
}
