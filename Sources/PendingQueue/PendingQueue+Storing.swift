import BucketStore
import Platform

/// Waiting for the store: what a file holds now is sent though it is still open, and the caller
/// learns what became of it.
extension PendingQueue {
  /// How often it is looked whether sending is possible, which nobody tells.
  private static let pace = Span.milliseconds(200)

  /// Has the store take what was acknowledged of a file, and waits until it has.
  ///
  /// The file stays pending when it has not.
  /// - Throws: `StoreError`: why it is not stored; `cancelled` when the caller was interrupted.
  func store(_ content: Content, _ call: Call) throws(StoreError) {
    let wanted = update { state -> UInt64? in
      guard let slot = state.slots[content.id], slot.content === content else { return nil }
      slot.demands += 1
      state.schedule.consider(content.id)
      if let first = state.chains[slot.record.object]?.first { state.schedule.consider(first) }
      return slot.acknowledgements
    }
    // Removed, or stored already.
    guard let wanted else { return }
    defer { update { $0.slots[content.id]?.demands -= 1 } }
    do throws(Errno) {
      try commit()
    } catch {
      // It is sent all the same: the store is the best place for what this disk cannot keep.
      Log.warning("pending file \(content.id) is not durable here: \(error)")
    }
    let handler = call.cancellation.onCancel { [state] in state.wakeAll() }
    defer { call.cancellation.remove(handler) }
    var sent: Int64 = -1
    var deadline = call.deadline
    while true {
      if call.cancellation.isCancelled {
        throw StoreError(.cancelled, "interrupted while the store took the file")
      }
      let version = state.withLock { $0.version }
      let (end, now) = state.withLock { $0.look(content.id, wanted) }
      switch end {
      case .stored: return
      case .failed(let error): throw error
      case nil: break
      }
      if let obstacle { throw obstacle }
      if now != sent {
        if now > sent { call.getsOn() }
        sent = now
        deadline = .now + call.timeout
      }
      guard Instant.now < deadline else {
        let failure = state.withLock { $0.slots[content.id]?.record.failure }
        throw failure.map(StoreError.init)
          ?? StoreError(.timeout, "the store has not taken the file in time; it is kept, and sent")
      }
      _ = state.wait(until: min(deadline, .now + Self.pace)) {
        $0.version == version && !call.cancellation.isCancelled ? nil : true
      }
    }
  }

  /// Why nothing is sent now; nil when it is.
  private var obstacle: StoreError? {
    switch options.gate() {
    case .open: nil
    case .offline: StoreError(.offline, "the store cannot be reached; the file is kept, and sent")
    case .disabled:
      StoreError(.disabled, "network access is switched off; the file is kept, and sent later")
    case .signedOut: StoreError(.sessionExpired, "nobody is signed in; the file is kept")
    }
  }
}

/// How a file comes to the store that somebody waits for.
private enum Arrival {
  case stored
  case failed(StoreError)
}

extension QueueState {
  /// What became of a file that the store was to take as it was acknowledged then, and how many
  /// bytes are on their way.
  fileprivate func look(_ id: PendingID, _ wanted: UInt64) -> (Arrival?, sent: Int64) {
    // What was removed or replaced meanwhile is waited for by nobody.
    guard let slot = slots[id], slot.record.operation == .put, !slot.isSuperseded else {
      return (.stored, 0)
    }
    if let stored = slot.storedAt, stored >= wanted { return (.stored, 0) }
    if slot.record.state == .failed, let failure = slot.record.failure {
      return (.failed(StoreError(failure)), 0)
    }
    return (nil, slot.flight?.sent ?? -1)
  }
}

extension StoreError {
  /// What a record says of its last try.
  fileprivate init(_ failure: PendingFailure) {
    let kind = Kind(rawValue: failure.kind)
    self.init(kind ?? (failure.kind == PendingFailure.noRoom ? .noRoom : .server), failure.reason)
  }
}
