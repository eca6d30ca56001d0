import BucketStore
import Platform

extension Download {
  /// Counts one more reader.
  ///
  /// - Returns: false when it takes none any more.
  func enter() -> Bool {
    state.withLock { state -> Bool in
      switch state.phase {
      case .closed, .ended: return false
      case .asking, .unchanged, .open, .checking, .whole:
        state.readers += 1
        return true
      }
    }
  }

  /// One reader less. The last one stops what only readers want; a small object is fetched to its
  /// end, so that it becomes a copy.
  func leave() {
    let partSize = cache.options.partSize
    let (unwanted, isLast) = state.withLock { state -> ([Cancellation], Bool) in
      state.readers -= 1
      guard state.readers == 0 else { return ([], false) }
      let isAsking = if case .asking = state.phase { true } else { false }
      guard isAsking || state.isSuperseded || state.size > partSize else {
        return ([], state.transfers.isEmpty)
      }
      // Who opens it before they have ended waits for transfers of its own, not for their failure.
      // A question has none: it ends, and is asked anew.
      if !isAsking { for id in state.transfers.keys { state.transfers[id]?.isStopped = true } }
      return (state.transfers.values.map(\.call.cancellation), state.transfers.isEmpty)
    }
    for cancellation in unwanted { cancellation.cancel() }
    // A transfer that is still at work settles it when it ends. When the cache is being closed,
    // that settles it.
    if isLast { _ = cache.pool.run { self.settle() } }
  }

  /// A newer version is known: these bytes become no copy. Readers go on as far as they can.
  func supersede() {
    let unwanted = state.withLock { state -> [Cancellation] in
      state.isSuperseded = true
      return state.readers == 0 ? state.transfers.values.map(\.call.cancellation) : []
    }
    for cancellation in unwanted { cancellation.cancel() }
    state.wakeAll()
  }

  /// Ends all transfers: the cache is being closed.
  func stop() {
    let transfers = state.withLock { $0.transfers.values.map(\.call.cancellation) }
    for cancellation in transfers { cancellation.cancel() }
    checking.cancel()
    state.wakeAll()
  }

  /// Waits for the store's answer.
  ///
  /// - Returns: the phase after it: `unchanged`, `ended`, or one that can be read from.
  /// - Throws: `StoreError` of kind `cancelled` or `timeout`.
  func waitForAnswer(_ call: Call) throws(StoreError) -> Phase {
    let phase = try wait(call, for: "the store's answer about \(object)") { state -> Phase? in
      switch state.phase {
      case .asking: nil
      case .open: state.isSizeKnown ? .open : nil
      case .unchanged, .checking, .whole, .closed, .ended: state.phase
      }
    }
    if case .ended = phase { return phase }
    call.getsOn()
    return phase
  }

  /// Waits until the file has become a copy, or never will.
  func waitUntilSettled(_ call: Call) throws(StoreError) {
    _ = try wait(call, for: "\(object) to be put in place") { $0.isSettled ? true : nil }
  }

  /// Where bytes can be read, or why they will not come.
  enum Supply {
    case file(PartFile)
    /// The reader must ask the store itself.
    case direct(ObjectFacts)
  }

  /// The file, when a range of bytes is there and may be handed out. Never waits.
  ///
  /// - Parameter ahead: how many bytes from the start of the range should be on their way.
  /// - Throws: `StoreError` when they will never be there.
  func available(_ range: Range<Int64>, ahead: Int64) throws(StoreError) -> Supply? {
    let partSize = cache.options.partSize
    let unit = cache.partUnit
    let timeout = cache.options.timeout
    let (supply, started) = try state.withLock {
      (state) throws(StoreError) -> (Supply?, [Int]) in
      let supply = try state.supply(range, partSize: partSize)
      return (
        supply, state.plan(range, ahead: ahead, partSize: partSize, unit: unit, timeout: timeout)
      )
    }
    launch(started)
    return supply
  }

  /// Waits until a range of bytes may be read.
  ///
  /// - Throws: `StoreError`: why they do not come, `timeout` when nothing has come for that long.
  func require(_ range: Range<Int64>, ahead: Int64, _ call: Call) throws(StoreError) -> Supply {
    let partSize = cache.options.partSize
    let unit = cache.partUnit
    let seen = state.withLock { $0.failures }
    enum Step {
      case supply(Supply)
      case launch([Int])
    }
    while true {
      let step = try wait(call, for: "bytes of \(object)") { (state) throws(StoreError) -> Step? in
        if let supply = try state.supply(range, partSize: partSize) { return .supply(supply) }
        if state.failures != seen, let failure = state.lastFailure,
          !state.isCovered(range, partSize: partSize)
        {
          throw failure
        }
        let started = state.plan(
          range, ahead: ahead, partSize: partSize, unit: unit, timeout: call.timeout)
        return started.isEmpty ? nil : .launch(started)
      }
      switch step {
      case .supply(let supply):
        call.getsOn()
        return supply
      case .launch(let ids): launch(ids)
      }
    }
  }

  /// Waits for something, as long as bytes go on arriving.
  private func wait<Result: Sendable>(
    _ call: Call, for what: String,
    _ body: (inout State) throws(StoreError) -> Result?
  ) throws(StoreError) -> Result {
    // The store's own time-out comes first where it can, since it says more.
    let patience = call.timeout + .milliseconds(500)
    var lastSign = call.waitingSince
    while true {
      let result = try state.wait(until: lastSign + patience, call.cancellation) {
        (state) throws(StoreError) -> Result? in try body(&state)
      }
      if let result { return result }
      if call.cancellation.isCancelled { throw StoreError(.cancelled, "interrupted") }
      lastSign = max(lastSign, sign)
      if lastSign + patience <= .now {
        throw StoreError(.timeout, "waited \(call.timeout.text) for \(what)")
      }
    }
  }

  /// When there was hope last: by what this download brought, and by what any other did while a
  /// transfer of this one waits for a thread.
  private var sign: Instant {
    let (own, isQueued) = state.withLock { state in
      (state.lastSign, state.transfers.values.contains { !$0.isBegun })
    }
    return isQueued ? max(own, cache.lastSign.withLock { $0 }) : own
  }
}

extension Download.State {
  /// Where a range can be read now; nil when it is not there yet, or may not be handed out.
  mutating func supply(_ range: Range<Int64>, partSize: Int64) throws(StoreError)
    -> Download.Supply?
  {
    switch phase {
    case .whole: return file.map { .file($0) }
    case .checking: return nil
    case .open, .ended:
      if let file, present.contains(range), mayHandOut(range, partSize: partSize) {
        if isCheckable { handed.insert(range) }
        return .file(file)
      }
      if case .ended(let error) = phase { throw error }
      guard isDirect, let facts else { return nil }
      return .direct(facts)
    case .asking, .unchanged, .closed:
      throw StoreError(.cancelled, "the download has ended")
    }
  }

  /// Whether unchecked bytes may be given to a reader.
  private func mayHandOut(_ range: Range<Int64>, partSize: Int64) -> Bool {
    guard isCheckable else { return true }
    if isSecondTry || present.isWhole(size) { return false }
    if size > partSize { return true }
    return range.upperBound <= size - Download.withheldTail
  }

  /// Whether all that a range waits for is there or on its way.
  func isCovered(_ range: Range<Int64>, partSize: Int64) -> Bool {
    uncovered(size <= partSize ? 0..<size : range, near: partSize).isEmpty
  }

  /// The pieces of a range that are neither there nor about to be brought by a transfer.
  private func uncovered(_ range: Range<Int64>, near: Int64) -> [Range<Int64>] {
    var gaps = present.missing(in: range)
    for transfer in transfers.values where !transfer.isStopped {
      let end = min(transfer.limit ?? size, size)
      // Bytes far down a long stream come too late for who wants them now.
      let reach = transfer.next..<max(transfer.next, min(end, transfer.next + near + (1 << 17)))
      gaps = gaps.flatMap { gap in
        [
          gap.lowerBound..<max(gap.lowerBound, min(gap.upperBound, reach.lowerBound)),
          min(max(gap.lowerBound, reach.upperBound), gap.upperBound)..<gap.upperBound,
        ].filter { !$0.isEmpty }
      }
    }
    return gaps
  }

  /// Starts what a reader of a range needs, and what it is likely to need next.
  ///
  /// - Returns: the transfers to launch, once the lock is let go.
  mutating func plan(
    _ range: Range<Int64>, ahead: Int64, partSize: Int64, unit: Int64, timeout: Span
  ) -> [Int] {
    guard case .open = phase, isSizeKnown, !isDirect, transfers.count < 6 else { return [] }
    if size <= partSize {
      // One stream, and what is missing of it once it has broken.
      guard transfers.isEmpty, let gap = present.missing(in: 0..<size).first else { return [] }
      return [
        add(Transfer(start: gap.lowerBound, limit: gap.upperBound, call: Call(timeout: timeout)))
      ]
    }
    let end = min(size, range.lowerBound + max(ahead, unit, Int64(range.count)))
    guard let gap = uncovered(range.lowerBound..<end, near: partSize).first else { return [] }
    // Not yet needed, and enough is on its way: one request later, and a larger one.
    if gap.lowerBound >= range.upperBound, gap.lowerBound - range.upperBound > ahead / 2 {
      return []
    }
    let limit = min(gap.upperBound, gap.lowerBound + 8 * partSize)
    if let (id, _) = transfers.first(where: {
      $0.value.isElastic && !$0.value.isStopped && $0.value.limit == gap.lowerBound
    }) {
      transfers[id]?.limit = limit
      return []
    }
    return [add(Transfer(start: gap.lowerBound, limit: limit, call: Call(timeout: timeout)))]
  }
}
