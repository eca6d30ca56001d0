import BucketStore
import Platform

/// What is known in memory of one record. Guarded by the queue's lock.
final class Slot {
  /// As it is on disk, but for state and failure while it is being sent.
  var record: PendingRecord
  /// The open bytes, while anybody uses them.
  var content: Content?
  /// Handles, and the upload, that use the content.
  var users = 0
  /// Handles that may write.
  var writers = 0
  /// Whether one thread changes the record, on disk and here; others wait.
  var isBusy = false
  /// The try that runs.
  var flight: Flight?
  /// Whether what was acknowledged is not durable yet.
  var isUncommitted = false
  /// Who waits for the store to take it though it is open.
  var demands = 0
  /// What was acknowledged when the store took it, while it was open.
  var storedAt: UInt64?
  /// Counts what was acknowledged, so that a commit under way does not count for what came after.
  var acknowledgements: UInt64 = 0
  /// Whether the record on disk lacks what was acknowledged: the disk was full.
  var needsSave = false
  /// The later record of the same name that was acknowledged; this one goes once that is durable.
  var supersededBy: PendingID?
  /// The records that go once this one is durable.
  var supersedes: [PendingID] = []
  /// The bytes are gone, handed over most likely: not shown, and to be confirmed by the store.
  var lacksBytes = false
  /// No try before this moment, for the order of tries alone; not on disk.
  var notBefore: Timestamp?
  /// How many uploads had succeeded when a try last failed for want of the network.
  var successesAtFailure: Int?

  init(_ record: PendingRecord) {
    self.record = record
  }

  var isSuperseded: Bool { supersededBy != nil }

  /// Whether nobody may change its bytes, or somebody waits for the store to take them as they are.
  var isReady: Bool { writers == 0 || (demands > 0 && storedAt != acknowledgements) }

  /// Whether it is shown as a file.
  var isFile: Bool { record.operation == .put && !lacksBytes }
}

/// A try that runs: what it sends where, and how to stop it.
final class Flight: Sendable {
  let object: ObjectName
  let operation: PendingRecord.Operation
  /// When the record took the name: one that was renamed away and back is on another errand.
  private let placed: UInt64
  let call: Call
  /// The bytes that it reads, once it does.
  let content = Locked<Content?>(nil)
  /// What was acknowledged of it when it was about to be sent.
  let acknowledgements = Locked<UInt64>(0)
  /// The content, where this is the first try of it.
  let newlyTried = Locked<Fingerprint?>(nil)
  private let end = Locked((isStopped: false, isWhole: false))
  private let progress = Locked((sent: Int64(0), told: Instant(nanoseconds: 0)))

  init(_ record: PendingRecord, _ call: Call) {
    object = record.object
    operation = record.operation
    placed = record.placed
    self.call = call
  }

  /// Whether a record is still as it was when the try began, as far as its name goes.
  func isOf(_ record: PendingRecord) -> Bool {
    record.object == object && record.placed == placed
  }

  /// Ends the try, unless the store may have all of its bytes: then only its answer tells what
  /// became of them, and an end here would leave them to be stored after everything else.
  func stop() {
    let mayEnd = end.withLock { end in
      if !end.isWhole { end.isStopped = true }
      return !end.isWhole
    }
    if mayEnd { call.cancellation.cancel() }
  }

  /// Whether it was ended before the store could have all of its bytes.
  var isStopped: Bool { end.withLock { $0.isStopped } }

  /// Notes that the last of the bytes are about to be sent.
  ///
  /// - Returns: false when they must not be, since the try was ended.
  func beginLast() -> Bool {
    end.withLock { end in
      if !end.isStopped { end.isWhole = true }
      return !end.isStopped
    }
  }

  /// Bytes sent so far.
  var sent: Int64 { progress.withLock { $0.sent } }

  /// Takes the progress, and says whether to tell it: ten times a second at most.
  func tell(_ sent: Int64) -> Bool {
    progress.withLock { progress in
      progress.sent = sent
      guard Instant.now.since(progress.told) > .milliseconds(100) else { return false }
      progress.told = .now
      return true
    }
  }
}
