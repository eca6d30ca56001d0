import BucketStore
import FileCache
import FileSystem
import Glibc
import Mount
import Platform

/// One mount, from its store to its mount point, and what answers for it.
final class Service: Sendable {
  let plan: MountPlan
  /// The mount point as the kernel knows it.
  let mountpoint: String
  let parts: StoreParts
  let cache: FileCache
  let fileSystem: FileSystem
  let since = Timestamp.now
  /// Where the log goes; nil for standard error.
  let log: String?

  /// Builds all the parts, from the store upward; nothing is mounted yet.
  ///
  /// - Parameters:
  ///   - mountpoint: as the kernel knows it.
  ///   - log: the file that the log goes to; nil for standard error.
  init(_ plan: MountPlan, at mountpoint: String, log: String?) throws(Complaint) {
    self.plan = plan
    self.log = log
    self.mountpoint = mountpoint
    let parts = try StoreParts(plan)
    self.parts = parts
    do throws(CacheError) {
      cache = try FileCache(
        options: plan.cacheOptions(at: mountpoint, user: parts.user), store: parts.store)
    } catch {
      throw Complaint(error)
    }
    fileSystem = FileSystem(
      cache: cache, store: parts.store, options: plan.fileSystemOptions)
    // What was fresh when the store was lost may have changed unseen.
    parts.network.onChange { [fileSystem] change in
      let apart: [NetworkState] = [.offline, .disabled]
      if apart.contains(change.from), !apart.contains(change.to) { fileSystem.distrust() }
    }
  }

  /// Mounts, and serves until the mount is gone.
  ///
  /// - Parameter onReady: called once, when the mount can be used and answers the verbs.
  func run(_ onReady: @escaping @Sendable () -> Void) throws(Complaint) -> ExitCode {
    Log.level = plan.logLevel
    try parts.start(bucket: plan.bucket)
    defer {
      fileSystem.close()
      parts.stop()
    }
    try greet()
    let control = try ControlServer(at: ByteString(mountpoint)) { [self] in answer($0, $1) }
    let session = MountSession(fileSystem: fileSystem, options: plan.mountOptions(at: mountpoint)) {
      do throws(Errno) {
        try control.start()
      } catch {
        // The mount works without it; the verbs say that it cannot be talked to.
        Log.error("the control socket cannot be used: \(error)")
      }
      onReady()
    }
    defer { control.stop() }
    do throws(MountError) {
      if case .forced = try session.run() { return .failed }
      return .done
    } catch {
      throw Complaint(error)
    }
  }
}
