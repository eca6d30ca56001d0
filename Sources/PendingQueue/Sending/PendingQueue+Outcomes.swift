import BucketStore
import Platform

/// What becomes of a record after a try.
extension PendingQueue {
  /// Ends a try: the record's next state on disk, then in memory.
  func finish(_ id: PendingID, _ flight: Flight, _ outcome: Outcome) {
    switch outcome {
    case .stored(let info, let sums):
      update { $0.schedule.succeeded() }
      stored(id, flight, info, sums)
    case .deleted:
      update { $0.schedule.succeeded() }
      drop(id, flight)
    case .overtaken:
      land(id, flight) { _ in }
    case .conflict(let words, let theirs):
      update { $0.schedule.resume() }
      if !setAside(id, flight, words, theirs: theirs) {
        Log.warning("\(options.title(flight.object)) is kept on this device: \(words)")
        fail(id, flight, PendingFailure.conflict, words)
      }
    case .damaged(let words):
      Log.error("\(options.title(flight.object)) is not sent: \(words)")
      fail(id, flight, PendingFailure.damaged, words)
    case .failed(let error):
      failed(id, flight, error, Verdict(error.kind, session: store.session))
    }
    // A try whose record was given up while it ran leaves it to be taken out now.
    retireSuperseded(id)
  }

  // MARK: - Success

  private func stored(_ id: PendingID, _ flight: Flight, _ info: ObjectInfo, _ sums: Fingerprint) {
    guard let record = begin(id) else { return land(id, flight) { _ in } }
    let (isWanted, isOpen) = state.withLock { state in
      state.slots[id].map { (!$0.isSuperseded, $0.writers > 0) } ?? (false, false)
    }
    guard record.operation == .put, flight.isOf(record), isWanted else {
      end(id, nil)
      receiver.withLock { $0 }?.storeChanged(flight.object)
      return land(id, flight) { _ in }
    }
    if isOpen {
      // Its bytes are its writers' yet: once they have closed it, the store is asked again.
      end(id, nil)
      update { $0.slots[id]?.storedAt = flight.acknowledgements.withLock { $0 } }
      return land(id, flight) { $0.base = .object(version: info.version, tag: info.tag) }
    }
    let file = StoredFile(
      object: record.object, info: info, path: directory.dataPath(id), size: sums.size,
      sha256: sums.sha256, modified: record.modified, mode: record.mode,
      attributes: record.attributes)
    // Still shown by the queue meanwhile: the name is there at every instant.
    let taken = receiver.withLock({ $0 })?.take(file) ?? false
    Log.debug("\(options.title(record.object)) is stored\(taken ? "" : "; its bytes are not kept")")
    CrashPoint.reach(.handedOver)
    removeFiles(id)
    CrashPoint.reach(.handoverDone)
    leaveQueue(id, flight)
  }

  /// A record that has nothing left to do.
  private func drop(_ id: PendingID, _ flight: Flight) {
    guard begin(id) != nil else { return land(id, flight) { _ in } }
    removeFiles(id)
    leaveQueue(id, flight)
  }

  private func removeFiles(_ id: PendingID) {
    do throws(Errno) {
      try directory.remove(id)
    } catch {
      // The next start finds it, asks the store, and removes it.
      Log.error("the record \(id) of a stored file stays: \(error)")
    }
  }

  private func leaveQueue(_ id: PendingID, _ flight: Flight) {
    update { state in
      state.land(id, flight)
      state.remove(id)
    }
  }

  // MARK: - Failure

  private func failed(
    _ id: PendingID, _ flight: Flight, _ error: StoreError, _ verdict: Verdict
  ) {
    let now = options.clock()
    let failure = PendingFailure(
      kind: error.kind.rawValue, reason: error.message, isRetryable: verdict != .refused)
    switch verdict {
    case .stopped:
      land(id, flight) { _ in }
    case .noNetwork:
      // The network was there for others since: then it is this file that does not get through.
      let isOwn = update { state -> Bool in
        guard let slot = state.slots[id] else { return false }
        let successes = state.schedule.successes
        defer { slot.successesAtFailure = successes }
        if let before = slot.successesAtFailure, before < successes { return true }
        state.schedule.failed(now, patience: 0)
        return false
      }
      if isOwn { return later(id, flight, failure, now) }
      // In memory alone: the record on disk loses nothing, and a long outage writes nothing.
      rest(id, flight, failure, now)
    case .noSession:
      update { $0.schedule.failed(now, patience: 0) }
      rest(id, flight, failure, now)
    case .throttled:
      update { $0.schedule.failed(now, patience: 0) }
      later(id, flight, failure, now)
    case .later:
      update { $0.schedule.failed(now, patience: 2) }
      later(id, flight, failure, now)
    case .refused, .conflict:
      update { $0.schedule.resume() }
      Log.warning("\(options.title(flight.object)) is kept on this device: \(error.message)")
      fail(id, flight, error.kind.rawValue, error.message)
    }
  }

  /// Waits for the way to the store, behind the others once.
  private func rest(
    _ id: PendingID, _ flight: Flight, _ failure: PendingFailure, _ now: Timestamp
  ) {
    update { state in
      state.land(id, flight)
      guard let slot = state.slots[id] else { return }
      slot.record.failure = failure
      slot.notBefore = (state.schedule.hold ?? now) + .seconds(1)
      state.schedule.consider(id)
    }
  }

  /// Waits for its own next try.
  private func later(
    _ id: PendingID, _ flight: Flight, _ failure: PendingFailure, _ now: Timestamp
  ) {
    land(id, flight) { record in
      record.attempts += 1
      record.nextTry = now + Schedule.pauses.pause(afterFailures: Int(clamping: record.attempts))
      record.failure = failure
    }
  }

  /// Fails until somebody changes something.
  private func fail(_ id: PendingID, _ flight: Flight, _ kind: String, _ reason: String) {
    let (isDeletion, lacksBytes) = state.withLock { state in
      state.slots[id].map { ($0.record.operation == .delete, $0.lacksBytes) } ?? (false, false)
    }
    // What was refused is the file, which was removed meanwhile; an earlier try is to be deleted.
    if isDeletion, flight.operation == .put { return land(id, flight) { _ in } }
    if isDeletion {
      Log.error(
        "\(options.title(flight.object)) stays at the store, though it was removed here: \(reason)")
      return drop(id, flight)
    }
    if lacksBytes {
      do throws(Errno) {
        try directory.putAside("\(id).json")
      } catch {
        Log.error("the record \(id) cannot be put aside: \(error)")
      }
      return update { state in
        state.land(id, flight)
        state.remove(id)
        state.counts.aside += 1
      }
    }
    // The store said no: what it refused at the first try it does not have.
    let refused = flight.newlyTried.withLock { $0 }
    land(id, flight) { record in
      record.tried.removeAll { $0 == refused }
      record.state = .failed
      record.attempts += 1
      record.nextTry = nil
      record.failure = PendingFailure(kind: kind, reason: reason, isRetryable: false)
    }
  }

  /// Ends a try of a record that stays; `body` changes one that is still the try's own.
  func land(_ id: PendingID, _ flight: Flight, _ body: (inout PendingRecord) -> Void) {
    guard let record = begin(id) else {
      return update { $0.land(id, flight) }
    }
    var changed = record
    if flight.isOf(record) || record.operation == .delete {
      if changed.state == .uploading { changed.state = .waiting }
      body(&changed)
    }
    do throws(Errno) {
      // "uploading" on disk is read as "waiting": only what is more than that is written.
      var spoken = record
      spoken.state = changed.state
      if changed != spoken || changed.state == .failed { try save(changed) }
    } catch {
      Log.warning("the state of pending file \(id) is not written: \(error)")
    }
    end(id, changed) { state, _ in state.land(id, flight) }
  }
}

extension QueueState {
  /// Forgets a try.
  mutating func land(_ id: PendingID, _ flight: Flight) {
    schedule.inFlight -= 1
    schedule.flying.remove(flight.object)
    if let next = chains[flight.object]?.first { schedule.consider(next) }
    guard let slot = slots[id] else { return }
    slot.flight = nil
    if slot.record.state == .uploading { update(slot) { $0.record.state = .waiting } }
    if let content = flight.content.withLock({ $0 }), slot.content === content { release(slot) }
    schedule.consider(id)
  }
}
