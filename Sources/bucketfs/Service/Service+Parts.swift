import BucketStore
import FileCache
import FileSystem
import Glibc
import Mount
import Platform

extension Service {
  /// The store that a plan names.
  static func store(_ plan: MountPlan) throws(Complaint) -> any BucketStore {
    switch plan.store {
    case .directory(let path):
      do throws(Errno) {
        return try DirectoryStore(path)
      } catch {
        throw Complaint(
          error == .noEntry ? .no : .refused, "the folder \(path) cannot be used: \(error)")
      }
    case .supabase(let url):
      throw Complaint(.failed, "\(url): not yet")
    }
  }
}

extension MountPlan {
  /// The folder of the store that is the mount's root.
  var root: FolderName {
    guard let bucket else { return .buckets }
    return FolderName(bucket: bucket, prefix: prefix.map { $0 + "/" } ?? ByteString())
  }

  /// The least that is logged.
  var logLevel: Log.Level {
    switch settings.logLevel {
    case "debug": .debug
    case "info": .info
    case "error": .error
    default: .warning
    }
  }

  /// How the tree looks.
  var fileSystemOptions: FileSystemOptions {
    FileSystemOptions(
      uid: settings.uid ?? getuid(), gid: settings.gid ?? getgid(), umask: settings.umask,
      root: root, namedBuckets: bucket.map { [$0] } ?? [])
  }

  /// How copies and listings are kept.
  func cacheOptions(at mountpoint: String) -> CacheOptions {
    var options = CacheOptions(
      directory: cacheDirectory, mountPoint: mountpoint, identity: "\(store)")
    options.maxAge = settings.maxAge
    options.cacheSize = settings.cacheSize
    options.listingCacheSize = settings.listingCacheSize
    options.timeout = settings.timeout
    return options
  }

  /// How the mount is made.
  func mountOptions(at mountpoint: String) -> MountOptions {
    var options = MountOptions(mountPoint: mountpoint, source: source)
    for word in settings.mountWords { _ = options.take(word: word) }
    options.allowOther = settings.allowOther
    options.allowNonEmpty = settings.nonEmpty
    options.timeout = settings.timeout
    return options
  }
}
