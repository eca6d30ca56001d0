import BucketStore
import Platform

/// What becomes of a file that another writer has stored or changed first: theirs keeps the name,
/// and ours goes beside it, as a file of its own.
extension PendingQueue {
  /// Files of the owner that were stored beside another writer's in the last month, the newest last.
  package var conflicts: [ConflictCopy] {
    let owner = state.withLock { $0.owner }
    return conflictLog.copies(of: owner, since: options.clock())
  }

  /// The most names that are tried.
  private static let mostNames = 99

  /// Gives the file of a try another name, in one step on disk; it then waits like any other.
  ///
  /// - Parameter theirs: the facts of what the store has under the name.
  /// - Returns: false when there is no name for it.
  func setAside(_ id: PendingID, _ flight: Flight, _ words: String, theirs: ObjectInfo) -> Bool {
    while true {
      guard let original = state.withLock({ $0.slots[id]?.record.original }) else {
        land(id, flight) { _ in }
        return true
      }
      guard let copy = freeName(beside: original, flight) else { return false }
      guard let record = begin(id) else {
        land(id, flight) { _ in }
        return true
      }
      enum Finding { case go, taken, overtaken }
      let finding = state.withLock { state -> Finding in
        guard let slot = state.slots[id], record.operation == .put, flight.isOf(record),
          !slot.isSuperseded
        else { return .overtaken }
        // Written again meanwhile: the newer bytes find out for themselves.
        if state.later(slot).contains(where: { $0.writers > 0 }) { return .overtaken }
        guard state.isFree(copy) else { return .taken }
        // Nobody else is given the name while this one's record of it is made durable.
        state.coming.setAside(as: copy)
        return .go
      }
      switch finding {
      case .overtaken:
        end(id, nil)
        land(id, flight) { _ in }
        return true
      case .taken:
        end(id, nil)
      case .go:
        move(record, flight, to: copy, words, theirs)
        return true
      }
    }
  }

  /// A name that nothing pending has, nor the store as far as it says.
  private func freeName(beside object: ObjectName, _ flight: Flight) -> ObjectName? {
    let now = options.clock()
    for number in 1...Self.mostNames {
      guard
        let copy = options.conflictNames.name(
          beside: object, number: number, at: now, allows: { store.allows($0) })
      else { return nil }
      if state.withLock({ !$0.isFree(copy) }) { continue }
      do throws(StoreError) {
        _ = try store.info(copy, flight.call)
      } catch {
        // Free; or not known, which its own upload finds out before it replaces anything.
        return copy
      }
    }
    return nil
  }

  /// - Parameter record: one that this thread changes.
  private func move(
    _ record: PendingRecord, _ flight: Flight, to copy: ObjectName, _ words: String,
    _ theirs: ObjectInfo
  ) {
    let now = options.clock()
    var moved = record
    moved.object = copy
    moved.placed = update { $0.stamp(now) }
    moved.conflictOf = record.original
    moved.base = .absent
    // What the store has under the old name is none of ours, so nothing is left to be deleted there.
    moved.tried = []
    moved.upload = nil
    moved.attempts = 0
    moved.nextTry = nil
    moved.state = .waiting
    moved.failure = nil
    do throws(Errno) {
      try save(moved, durable: true)
    } catch {
      end(record.id, nil) { state, _ in state.coming.isSetAside(as: copy) }
      Log.warning("\(record.object) has no name of its own yet: \(error)")
      return land(record.id, flight) { record in
        record.attempts += 1
        record.nextTry = now + Schedule.pauses.pause(afterFailures: Int(clamping: record.attempts))
        record.failure = PendingFailure(
          kind: PendingFailure.device, reason: "its new name could not be kept: \(error)",
          isRetryable: true)
      }
    }
    CrashPoint.reach(.conflictMoved)
    // Shown by the queue until then, by the receiver from then on.
    receiver.withLock { $0 }?.changedElsewhere(record.object, theirs)
    end(record.id, moved) { state, slot in
      state.coming.isSetAside(as: copy)
      state.land(record.id, flight)
      state.acknowledge(slot)
      state.note(record.object, .content)
    }
    conflictLog.add(
      ConflictCopy(at: now, object: moved.original, copy: copy, owner: record.owner))
    Log.warning(
      "\(moved.original): \(words); what was written here is stored beside it, as \(copy)")
    if let token = record.upload { abandon(token, record, flight.call) }
  }
}

extension QueueState {
  /// Whether no record has a name, nor is about to get it.
  fileprivate func isFree(_ object: ObjectName) -> Bool {
    chains[object] == nil && !coming.contains(object)
  }
}

extension PendingRecord {
  /// The name that the file had before it was set aside, or has.
  var original: ObjectName { conflictOf ?? object }
}
