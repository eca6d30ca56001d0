import BucketStore
import FileCache
import FileSystem
import Glibc
import Mount
import PendingQueue
import Platform

/// One mount, from its store to its mount point, and what answers for it.
final class Service: Sendable {
  let plan: MountPlan
  /// The mount point as the kernel knows it.
  let mountpoint: String
  let parts: StoreParts
  let cache: FileCache
  /// What the store does not have yet; nil where the mount is for reading only.
  let queue: PendingQueue?
  let fileSystem: FileSystem
  let networkSwitch: NetworkSwitch
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
    networkSwitch = NetworkSwitch(folder: plan.dataDirectory)
    if networkSwitch.isOff { parts.network.disable() }
    do throws(CacheError) {
      cache = try FileCache(
        options: plan.cacheOptions(at: mountpoint, user: parts.user), store: parts.store)
    } catch {
      throw Complaint(error)
    }
    do throws(Complaint) {
      queue = try plan.openQueue(parts, cache)
    } catch {
      cache.close()
      throw error
    }
    fileSystem = FileSystem(
      cache: cache, store: parts.store, queue: queue,
      options: plan.fileSystemOptions(readOnly: queue == nil))
    watchNetwork()
  }

  private func watchNetwork() {
    let lostSince = Locked<Instant?>(nil)
    parts.network.onChange { [fileSystem, queue] change in
      let apart: [NetworkState] = [.offline, .disabled]
      if apart.contains(change.to) {
        lostSince.withLock { $0 = $0 ?? .now }
        return
      }
      guard apart.contains(change.from) else { return }
      // What was fresh when the store was lost may have changed unseen.
      fileSystem.distrust()
      let lost = lostSince.withLock { since -> Instant? in
        defer { since = nil }
        return since
      }
      // A way that comes and goes must not make uploads try again each time.
      if let lost, Instant.now.since(lost) > Self.blip { queue?.gateChanged() }
    }
  }

  /// The store may be lost for so long without uploads being tried at once when it is back: they
  /// come back by their own pauses, which are as short after a short time.
  private static let blip = Span.seconds(3)

  /// Mounts, and serves until the mount is gone.
  ///
  /// - Parameter onReady: called once, when the mount can be used and answers the verbs.
  func run(_ onReady: @escaping @Sendable () -> Void) throws(Complaint) -> ExitCode {
    Log.level = plan.logLevel
    try parts.start(bucket: plan.bucket)
    defer {
      // What is on its way is stopped first; what was just stored still finds the cache.
      queue?.close()
      fileSystem.close()
      parts.stop()
    }
    try greet()
    parts.noteGreeting()
    lookAround()
    tellPending()
    let trouble = cache.trouble.map {
      "nothing is kept on this device: the cache \(plan.cacheDirectory): \($0)"
    }
    if let trouble {
      Console.remark(
        Complaint(
          .failed, trouble, hint: "files are read all the same; make room, then mount again"
        ).text)
    }
    let control = try ControlServer(at: ByteString(mountpoint)) { [self] in answer($0, $1) }
    let options = plan.mountOptions(at: mountpoint, readOnly: queue == nil)
    let session = MountSession(fileSystem: fileSystem, options: options) { [self] in
      do throws(Errno) {
        try control.start()
      } catch {
        // The mount works without it; the verbs say that it cannot be talked to.
        Log.error("the control socket cannot be used: \(error)")
      }
      do throws(Errno) {
        try queue?.start(receiver: fileSystem)
      } catch {
        Log.error("nothing is uploaded until the next mount: no thread for it: \(error)")
      }
      onReady()
      if let trouble { Log.warning(trouble) }
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
