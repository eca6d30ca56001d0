import BucketStore
import FileCache
import FileSystem
import Glibc
import Platform

extension Service {
  /// The most keys that `unreachable` lists.
  private static let mostHiddenKeys = 100_000

  /// Answers one request of a verb, on a thread of its own.
  func answer(_ request: ControlRequest, _ cancellation: Cancellation) -> ControlReply {
    let call = Call(timeout: plan.settings.timeout, cancellation: cancellation)
    do throws(Complaint) {
      switch request.verb {
      case .status: return .status(status)
      case .unreachable: return .hidden(hiddenKeys)
      case .queue: return .queue(queueAnswer(limit: request.limit))
      case .wait: return .waited(waitForQueue(seconds: request.timeout, call))
      case .retry, .remove: return .changed(try changePending(request))
      case .clear: return .cleared(try clear(request.pending ?? false))
      case .cached: return .copy(try cached(try Target(request, self)))
      case .ensure: return .copy(try ensure(try Target(request, self), call))
      case .info: return .object(try info(try Target(request, self), call))
      case .offline:
        try goOffline()
        return .status(status)
      case .online:
        try goOnline(call)
        return .status(status)
      case .mount, .unmount:
        throw Complaint(.usage, "\(request.verb.rawValue) is not done by the mount")
      }
    } catch {
      return ControlReply(error)
    }
  }

  /// The object that a request is about.
  struct Target {
    /// The path in full, for people.
    let path: String
    /// The last segment, as the tree shows it.
    let name: ByteString
    let object: ObjectName

    init(_ request: ControlRequest, _ service: Service) throws(Complaint) {
      guard let inside = request.pathBytes, !inside.isEmpty else {
        throw Complaint(.usage, "no path is given")
      }
      let path = (ByteString(service.mountpoint) + "/" + inside).description
      self.path = path
      name = inside.split(at: ByteString.slash).last ?? inside
      do throws(Failure) {
        object = try service.fileSystem.object(at: inside)
      } catch {
        switch error.errno {
        case .isDirectory: throw Complaint(.no, "\(path) is a folder, not an object")
        case .illegalSequence: throw Complaint(.no, "\(path): the store can hold no such name")
        default: throw Complaint(.usage, "\(path) is not a safe path")
        }
      }
    }
  }

  /// Switches network access off, until a person switches it on again.
  private func goOffline() throws(Complaint) {
    parts.network.disable()
    try plan.prepareDataFolder()
    do throws(Errno) {
      try networkSwitch.set(off: true)
    } catch {
      throw Complaint(
        .failed,
        "network access is off, but only until the mount ends: \(plan.dataDirectory)/offline "
          + "cannot be written: \(error)")
    }
  }

  /// Switches network access on, and waits for the first question to the store.
  private func goOnline(_ call: Call) throws(Complaint) {
    do throws(Errno) {
      try networkSwitch.set(off: false)
    } catch {
      throw Complaint(
        .failed, "network access stays off: \(plan.dataDirectory)/offline stays there: \(error)",
        hint: "remove that file, then try again")
    }
    parts.network.enable()
    // Whoever says so wants to see what is new, also where the network was never off.
    fileSystem.distrust()
    queue?.gateChanged()
    do throws(StoreError) {
      try parts.probe(plan.bucket, call)
    } catch {
      // A refusal is an answer: the store is reached.
      guard error.kind.isConnectivity || error.kind == .disabled || error.kind == .offline else {
        return
      }
      throw Complaint(
        .offline, "network access is on, but the store cannot be reached: \(error.message)",
        hint: "it is tried again and again")
    }
    // The network's own probe was started at the same time, and is about to hear the same.
    let deadline = Instant.now + .seconds(2)
    while parts.network.current == .offline, Instant.now < deadline {
      if call.cancellation.sleep(until: .now + .milliseconds(10)) { return }
    }
  }

  private var status: StatusReport {
    let usage = cache.usage
    return StatusReport(
      state: "serving", network: parts.network.current.rawValue,
      networkReason: networkReason, store: plan.storeAddress,
      session: parts.store.session.rawValue,
      cache: StatusReport.Usage(bytes: usage.bytes, limit: usage.limit, files: Int64(usage.files)),
      listings: StatusReport.Usage(
        bytes: fileSystem.listings.keptBytes, limit: plan.settings.listingCacheSize,
        files: Int64(fileSystem.listings.keptCount)),
      queue: queue.map { StatusReport.Queue($0.counts) } ?? StatusReport.Queue(),
      conflicts: conflictReports,
      hiddenKeys: fileSystem.hiddenKeyCount, pid: getpid(), mountpoint: mountpoint,
      source: plan.source, since: since.text, cacheDirectory: plan.cacheDirectory,
      cacheProblem: cache.trouble, log: log,
      version: Help.version)
  }

  private var networkReason: String? {
    if parts.network.current == .disabled {
      return "switched off; bucketfs online \(mountpoint) switches it on"
    }
    return parts.network.reason ?? fileSystem.trouble
  }

  private var hiddenKeys: [HiddenKeyReport] {
    fileSystem.hiddenKeys(limit: Self.mostHiddenKeys).map(HiddenKeyReport.init)
  }

  private func cached(_ target: Target) throws(Complaint) -> CopyReport {
    if let copy = pendingCopy(target) { return copy }
    guard let copy = cache.copy(of: target.object, comparing: true) else {
      try refuse(folder: target)
      throw Complaint(
        .no, "\(target.path): no copy is kept on this device",
        hint: "bucketfs ensure fetches one")
    }
    return CopyReport(copy, target.path)
  }

  /// The bytes of a file that the store does not have yet: they are on this device anyway.
  private func pendingCopy(_ target: Target) -> CopyReport? {
    guard let queue, let (entry, _) = pending(target.object) else { return nil }
    return CopyReport(
      path: target.path, copy: queue.path(of: entry.id), fetchedAt: entry.record.created.text,
      size: entry.size)
  }

  private func ensure(_ target: Target, _ call: Call) throws(Complaint) -> CopyReport {
    if let copy = pendingCopy(target) { return copy }
    do throws(StoreError) {
      return CopyReport(try cache.ensure(target.object, call), target.path)
    } catch {
      if error.kind == .notFound { try refuse(folder: target) }
      throw Complaint(error, target.path)
    }
  }

  private func info(_ target: Target, _ call: Call) throws(Complaint) -> ObjectReport {
    let object = target.object
    if let (entry, report) = pending(object) {
      return ObjectReport(target.path, entry, report, copy: pendingCopy(target))
    }
    do throws(StoreError) {
      let info = try parts.store.info(object, call)
      return ObjectReport(target.path, object, info, confirmed: true, cache.copy(of: object))
    } catch {
      if error.kind == .notFound, parts.store.session.isCredible {
        try refuse(folder: target)
        throw Complaint(error, target.path)
      }
      let copy = cache.copy(of: object)
      guard let info = copy?.info ?? listed(target) else { throw Complaint(error, target.path) }
      return ObjectReport(target.path, object, info, confirmed: false, copy)
    }
  }

  /// What the kept listing of its folder says of an object.
  private func listed(_ target: Target) -> ObjectInfo? {
    guard let entry = entry(target), !entry.isFolder else { return nil }
    return ObjectInfo(
      key: target.object.key, size: entry.size, tag: entry.tag, modified: entry.modified,
      contentType: entry.contentType)
  }

  private func refuse(folder target: Target) throws(Complaint) {
    guard let entry = entry(target), entry.isFolder else { return }
    throw Complaint(.no, "\(target.path) is a folder, not an object")
  }

  private func entry(_ target: Target) -> ListingEntry? {
    let key = target.object.key
    let end = key.bytes.lastIndex(of: ByteString.slash).map { $0 + 1 } ?? 0
    let folder = FolderName(bucket: target.object.bucket, prefix: ByteString(key.bytes[..<end]))
    return fileSystem.listings.kept(folder)?.entry(target.name)
  }
}
