import BucketStore
import FileCache
import FileSystem
import PendingQueue
import Platform

/// What the verbs ask of the queue.
extension Service {
  /// How long a probe may take that is made before it is said that the store is not reached.
  private static let probePatience = Span.seconds(5)

  func queueAnswer(limit: Int?) -> QueueAnswer {
    guard let queue else {
      return QueueAnswer(counts: StatusReport.Queue(), gate: "open", records: [])
    }
    let counts = queue.counts
    var entries = queue.records
    if let limit = limit.map({ max(0, $0) }), entries.count > limit {
      let order: [PendingState] = [.uploading, .failed, .writing, .waiting]
      entries = Array(order.flatMap { state in entries.filter { $0.state == state } }.prefix(limit))
    }
    return QueueAnswer(
      counts: StatusReport.Queue(counts), gate: parts.gate.rawValue,
      records: entries.map(report))
  }

  /// What is pending of an object, or nil.
  func pending(_ object: ObjectName) -> (entry: PendingEntry, report: QueueReport)? {
    guard let entry = queue?.entry(for: object) else { return nil }
    return (entry, report(entry))
  }

  private func report(_ entry: PendingEntry) -> QueueReport {
    QueueReport(
      entry, path: path(of: entry.object), conflictOf: entry.record.conflictOf.flatMap(path))
  }

  /// Where in the mount an object is shown, whole; nil when it is not.
  private func path(of object: ObjectName) -> String? {
    fileSystem.shownPath(of: object).map { (ByteString(mountpoint) + "/" + $0).description }
  }

  /// What was set aside lately, the newest first.
  var conflictReports: [ConflictReport] {
    (queue?.conflicts ?? []).reversed().map { conflict in
      ConflictReport(
        at: conflict.at.text, path: path(of: conflict.object) ?? conflict.object.description,
        copy: path(of: conflict.copy) ?? conflict.copy.description)
    }
  }

  func waitForQueue(seconds: Double?, _ call: Call) -> WaitReport {
    let deadline = seconds.map { Instant.now + .seconds($0) }
    guard let queue else {
      let count = plan.pendingCount
      return WaitReport(
        outcome: count > 0 ? "offline" : "stored", queue: StatusReport.Queue(waiting: count),
        reason: count > 0 ? "the mount is for reading only" : nil)
    }
    var outcome = WaitOutcome.offline
    repeat {
      if queue.counts.unsent > 0, parts.gate == .offline { probe(until: deadline, call) }
      outcome = queue.wait(until: deadline, call.cancellation)
      // A store that was lost for a moment is looked for before that is said.
    } while outcome == .offline && isReachedAgain(until: deadline, call)
    let word =
      switch outcome {
      case .stored: "stored"
      case .failed: "failed"
      case .offline: "offline"
      case .outOfTime: "timeout"
      }
    let answer = queueAnswer(limit: 0)
    return WaitReport(
      outcome: word, queue: answer.counts,
      reason: outcome == .offline ? reason(answer) : nil)
  }

  /// Why nothing is sent; what ailed the store before it was switched off is no part of it.
  private func reason(_ answer: QueueAnswer) -> String {
    let cause = answer.isSwitchedOff ? nil : parts.network.reason
    return [answer.obstacle, cause].compactMap { $0 }.joined(separator: ": ")
  }

  private func isReachedAgain(until deadline: Instant?, _ call: Call) -> Bool {
    if parts.gate == .offline { probe(until: deadline, call) }
    if let deadline, deadline <= .now { return false }
    return parts.gate == .open && !call.cancellation.isCancelled
  }

  /// Looks once more whether the store is reached.
  private func probe(until deadline: Instant?, _ call: Call) {
    parts.network.probeNow()
    let patience = Instant.now + Self.probePatience
    let end = deadline.map { min($0, patience) } ?? patience
    while parts.gate == .offline, Instant.now < end {
      if call.cancellation.sleep(until: .now + .milliseconds(20)) { return }
    }
  }

  /// Lets what is pending at or below a path be tried at once, or gives it up.
  func changePending(_ request: ControlRequest) throws(Complaint) -> ChangeReport {
    let isRemoval = request.verb == .remove
    let inside = request.pathBytes ?? ByteString()
    let path = inside.isEmpty ? mountpoint : (ByteString(mountpoint) + "/" + inside).description
    guard let queue else {
      throw Complaint(.no, "\(path): the mount is for reading only, and has no pending files")
    }
    if inside.isEmpty {
      guard !isRemoval else {
        throw Complaint(
          .usage, "\(path) is the mount itself",
          hint: "name files or folders in it, or use bucketfs clear --pending")
      }
      return ChangeReport(path: path, files: queue.retry())
    }
    let objects = try pendingObjects(below: inside, path, queue)
    var count = 0
    for object in objects {
      guard isRemoval else {
        count += queue.retry(object)
        continue
      }
      do throws(Errno) {
        try queue.remove(object)
        count += 1
      } catch {
        // It was stored in this very moment.
        if error == .noEntry { continue }
        throw Complaint(.failed, "\(path): a pending file cannot be removed: \(error)")
      }
    }
    return ChangeReport(path: path, files: count)
  }

  /// The pending objects that a path names: a file, or all in a folder.
  private func pendingObjects(below inside: ByteString, _ path: String, _ queue: PendingQueue)
    throws(Complaint) -> [ObjectName]
  {
    let all = queue.entries.map(\.object)
    let named = all.filter { object in
      guard let shown = fileSystem.shownPath(of: object) else { return false }
      return shown == inside || shown.hasPrefix(inside + "/")
    }
    guard named.isEmpty else { return named }
    throw Complaint(
      .no, "\(path): nothing of it is pending", hint: "bucketfs queue \(mountpoint) lists what is")
  }

  /// Removes what is kept on this device, and pending files where that was asked for.
  func clear(_ pendingToo: Bool) throws(Complaint) -> ClearReport {
    var count = 0
    if pendingToo, let queue {
      do throws(Errno) {
        count = try queue.clear()
      } catch {
        throw Complaint(.failed, "\(mountpoint): pending files cannot be removed: \(error)")
      }
    }
    let before = cache.usage.bytes
    fileSystem.listings.clear()
    do throws(CacheError) {
      try cache.clear()
    } catch {
      throw Complaint(error)
    }
    return ClearReport(
      mountpoint: mountpoint, before: before, after: cache.usage.bytes, pending: count)
  }
}
