import BucketStore
import Platform

extension Download {
  /// How often in a row an answer that brought nothing is asked for again; one that brought
  /// something always is.
  private static let idleLimit = 5
  /// The pause before the first such question; each further one waits twice as long.
  private static let idlePause = Span.milliseconds(50)

  /// Asks the store, on a thread of the pool.
  ///
  /// - Parameter firstPart: how many bytes to ask for when the object is known to be large.
  func ask(firstPart: Int64?, timeout: Span) {
    let id = state.withLock { state in
      state.add(Transfer(start: 0, limit: firstPart, call: Call(timeout: timeout)))
    }
    launch([id])
  }

  /// Runs transfers on threads of the pool.
  func launch(_ ids: [Int]) {
    for id in ids where !cache.pool.run({ self.run(id) }) {
      fail(id, StoreError(.cancelled, "the cache is being closed"))
    }
  }

  /// Runs one transfer to its end, resuming it where it breaks. Blocks.
  func run(_ id: Int) {
    state.withLock { $0.transfers[id]?.isBegun = true }
    var idle = 0
    while let request = request(id) {
      let before = state.withLock { $0.received }
      let error = attempt(id, request)
      guard let error else { break }
      if isDoubted(id) {
        Log.info("\(object): asked for once more, a listing has shown a newer version")
        continue
      }
      let progress = state.withLock { $0.received } - before
      idle = progress > 0 ? 0 : idle + 1
      guard canResume(id, after: error, isIdle: idle > 0), idle <= Self.idleLimit,
        idle == 0 || !request.1.cancellation.sleep(until: .now + pause(before: idle))
      else {
        fail(id, error)
        break
      }
      Log.info("\(object): resumed after \(progress) bytes: \(error)")
    }
    settle()
  }

  private func pause(before idle: Int) -> Span { Self.idlePause * (1 << Int64(idle - 1)) }

  /// Makes one request.
  ///
  /// - Returns: nil when the transfer has ended, as it should or on purpose, else why it broke.
  private func attempt(_ id: Int, _ request: (GetRequest, Call)) -> StoreError? {
    do throws(StoreError) {
      let outcome = try cache.store.get(request.0, into: TransferSink(self, id), request.1)
      switch outcome {
      case .notModified:
        guard request.0.unlessTag != nil else {
          return StoreError(.server, "\(object): not modified, says the store, unasked")
        }
        if doubtsKept(id) { return StoreError(.cancelled, "\(object): an older version") }
        answer(.unchanged)
        return nil
      case .complete: return complete(id)
      }
    } catch {
      return broken(id, error)
    }
  }

  /// Whether "not modified" was said of an older version than a listing has shown since.
  private func doubtsKept(_ id: Int) -> Bool {
    guard let kept = keptFacts else { return false }
    return doubts(id, kept.tag, kept.modified)
  }

  private func isDoubted(_ id: Int) -> Bool {
    state.withLock { state -> Bool in
      guard let isDoubted = state.transfers[id]?.isDoubted, isDoubted else { return false }
      state.transfers[id]?.isDoubted = false
      return true
    }
  }

  /// Looks at a transfer that brought all that its answer announced.
  private func complete(_ id: Int) -> StoreError? {
    state.withLock { state -> StoreError? in
      guard let transfer = state.transfers[id] else { return nil }
      if let fault = transfer.fault { return fault }
      guard case .open = state.phase, !transfer.isStopped else {
        state.transfers[id] = nil
        return nil
      }
      if !state.isSizeKnown {
        state.facts?.size = transfer.next
        state.isSizeKnown = true
      }
      let end = min(transfer.limit ?? state.size, state.size)
      guard transfer.start >= end || state.present.contains(transfer.start..<end) else {
        return StoreError(.damaged, "\(object): the store sent less than it announced")
      }
      state.transfers[id] = nil
      return nil
    }
  }

  /// Looks at a transfer that threw.
  private func broken(_ id: Int, _ error: StoreError) -> StoreError? {
    enum Verdict {
      case done
      case unchanged
      case broken(StoreError)
    }
    let verdict = state.withLock { state -> Verdict in
      if case .unchanged = state.phase { return .unchanged }
      guard let transfer = state.transfers[id] else { return .done }
      if let fault = transfer.fault { return .broken(fault) }
      guard state.needsNoMore(of: transfer) else { return .broken(error) }
      state.transfers[id] = nil
      return .done
    }
    switch verdict {
    case .done: return nil
    case .unchanged:
      answer(.unchanged)
      return nil
    case .broken(let error): return error
    }
  }

  /// What to ask next for a transfer; nil when it is over.
  private func request(_ id: Int) -> (GetRequest, Call)? {
    let asked = asked
    return state.withLock { state -> (GetRequest, Call)? in
      guard let transfer = state.transfers[id] else { return nil }
      var request = GetRequest(object: object)
      switch state.phase {
      case .asking:
        request.unlessTag = asked
        if transfer.isFresh { request.fresh = state.listed?.tag }
        request.range = transfer.limit.map { 0..<$0 }
      case .open:
        let end = min(transfer.limit ?? state.size, state.size)
        if transfer.next >= end {
          state.transfers[id] = nil
          return nil
        }
        if transfer.next > 0 || end < state.size { request.range = transfer.next..<end }
        if transfer.isFresh { request.fresh = state.facts?.tag }
      case .unchanged, .checking, .whole, .closed, .ended:
        state.transfers[id] = nil
        return nil
      }
      return (request, transfer.call)
    }
  }

  private func canResume(_ id: Int, after error: StoreError, isIdle: Bool) -> Bool {
    state.withLock { state -> Bool in
      guard var transfer = state.transfers[id], !transfer.call.cancellation.isCancelled else {
        return false
      }
      switch state.phase {
      case .asking:
        // A guess of the size that is too large makes the range one that the store refuses.
        guard transfer.limit != nil, error.kind == .server || error.kind == .damaged else {
          return false
        }
        transfer.limit = nil
        transfer.fault = nil
        state.transfers[id] = transfer
        return true
      case .open:
        // With all bytes there, damage is in the bytes; it is not mended by asking for no more.
        guard state.isMissingSome(of: transfer) || error.kind != .damaged else { return false }
        // Another silence would cost as much time again.
        guard !isIdle || error.kind != .timeout else { return false }
        return state.isSizeKnown && !state.isDirect && transfer.fault == nil
          && error.kind.isRetryable && error.kind != .offline && error.kind != .disabled
      case .unchanged, .checking, .whole, .closed, .ended: return false
      }
    }
  }

  /// Ends a transfer that will bring no more, and tells who waits for it.
  private func fail(_ id: Int, _ error: StoreError) {
    let isAsking = state.withLock { state -> Bool in
      let isContradiction = state.transfers[id]?.fault != nil || !state.isSizeProven
      state.transfers[id] = nil
      state.failures += 1
      state.lastFailure = error
      if error.kind == .damaged, isContradiction { state.isDoubtful = true }
      if case .asking = state.phase { return true }
      guard case .open = state.phase else { return false }
      if error.kind == .conflict {
        // What has come may be of two versions: none of it is handed out or kept.
        state.phase = .ended(StoreError(.damaged, error.message))
      } else if !state.isSizeKnown {
        state.phase = .ended(error)
      }
      return false
    }
    if isAsking { answer(.ended(error)) }
    state.wakeAll()
  }

  /// Ends the question. The cache is told first, so that who waits finds it up to date.
  private func answer(_ phase: Phase) {
    cache.answered(self, with: phase)
    state.withLock { state in
      state.transfers = [:]
      state.phase = phase
    }
    state.wakeAll()
  }
}

extension Download.State {
  /// Whether a transfer was cut short on purpose: nobody waits for its bytes any more.
  ///
  /// Another one may have brought them meanwhile, and they are being compared with the checksum, or
  /// have been.
  fileprivate func needsNoMore(of transfer: Transfer) -> Bool {
    switch phase {
    case .asking: transfer.isStopped
    case .open: transfer.isStopped || (isDirect && isSizeKnown)
    case .unchanged, .checking, .whole, .closed, .ended: true
    }
  }

  /// Whether a transfer has not brought all that is wanted of it.
  fileprivate func isMissingSome(of transfer: Transfer) -> Bool {
    transfer.next < min(transfer.limit ?? size, size)
  }

  mutating func add(_ transfer: Transfer) -> Int {
    lastTransfer += 1
    transfers[lastTransfer] = transfer
    return lastTransfer
  }
}
