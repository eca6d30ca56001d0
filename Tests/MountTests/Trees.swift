import BucketStore
import FileCache
import FileSystem
import PendingQueue
import Platform
import TestSupport

/// How a mount that can be written to keeps and sends what is written.
struct Writing {
  /// The profile's data folder: the same one for several mounts in a row shows what is kept.
  var directory: String
  var gate: @Sendable () -> UploadGate = { .open }
}

extension Mounted {
  /// The whole program below the mount, with a queue that sends.
  static func fileSystem(
    _ store: any WritableStore, _ scratch: Scratch, _ maxAge: Span, _ writing: Writing
  ) throws -> FileSystem {
    // One cache for several mounts in a row, as a person's profile has it.
    var options = CacheOptions(
      directory: writing.directory + "-cache", mountPoint: scratch.path, identity: "test")
    options.maxAge = maxAge
    let queue = try PendingQueue(
      QueueOptions(directory: writing.directory, owner: "test", gate: writing.gate), store: store)
    let fileSystem = FileSystem(
      cache: try FileCache(options: options, store: store), store: store, queue: queue,
      options: FileSystemOptions(
        uid: 0, gid: 0, readOnly: false, names: KeyNames(KeyEncoding.encode)))
    try queue.start(receiver: fileSystem)
    return fileSystem
  }

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
