import BucketStore
import FileCache
import FileSystem
import Glibc
import Mount
import Platform

/// What each part of the program is told of the options.
extension MountPlan {
  /// The store's address, for people.
  var storeAddress: String {
    switch store {
    case .supabase(let url): "supabase:\(url)"
    case .s3(let plan): "s3:\(plan.text)"
    case .directory(let path): "dir:\(path)"
    }
  }

  /// Where a person looks when the store refuses the credentials.
  var credentialsHint: String {
    switch store {
    case .supabase, .directory: "check the key in \(Places.configuration) or SUPABASE_KEY"
    case .s3:
      "check the credentials: AWS_ACCESS_KEY_ID, \(Places.home)/.aws/credentials or "
        + "\(Places.configuration)"
    }
  }

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
  func fileSystemOptions(readOnly: Bool) -> FileSystemOptions {
    var options = FileSystemOptions(
      uid: settings.uid ?? getuid(), gid: settings.gid ?? getgid(), umask: settings.umask,
      readOnly: readOnly, root: root, namedBuckets: bucket.map { [$0] } ?? [], names: names)
    options.closeWaits = settings.sync == "remote"
    options.syncWaits = settings.fsync == "remote"
    return options
  }

  /// How keys are shown as names.
  var names: KeyNames {
    if case .s3 = store { return .slashed }
    return keyEncoding.map { KeyNames($0) } ?? .verbatim
  }

  /// How keys stand for names; nil where they are the same.
  var keyEncoding: KeyEncoding? {
    // A folder's files are named as here, whatever the names.
    guard case .supabase = store else { return nil }
    return KeyEncoding(rawValue: settings.names)
  }

  /// Whose copies and pending files these are: the store, and the user where one is signed in.
  func identity(of user: String?) -> String { storeAddress + (user.map { "#\($0)" } ?? "") }

  /// How copies and listings are kept.
  ///
  /// - Parameter user: whose they are, where a user is signed in.
  func cacheOptions(at mountpoint: String, user: String?) -> CacheOptions {
    var options = CacheOptions(
      directory: cacheDirectory, mountPoint: mountpoint, identity: identity(of: user))
    options.maxAge = settings.maxAge
    options.cacheSize = settings.cacheSize
    options.listingCacheSize = settings.listingCacheSize
    options.partSize = settings.partSize
    options.timeout = settings.timeout
    return options
  }

  /// How the mount is made.
  func mountOptions(at mountpoint: String, readOnly: Bool) -> MountOptions {
    var options = MountOptions(mountPoint: mountpoint, source: source)
    // Every word here was taken once already, when the options were read.
    for word in settings.mountWords { _ = options.take(word: word) }
    options.readOnly = readOnly
    options.allowOther = settings.allowOther
    options.allowNonEmpty = settings.nonEmpty
    options.timeout = settings.timeout
    return options
  }
}
