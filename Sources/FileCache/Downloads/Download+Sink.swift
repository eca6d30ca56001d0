import BucketStore
import Platform

extension Download {
  /// The head of an answer is in: the version that is downloaded, or the same one once more.
  ///
  /// - Returns: false when its bytes are of no use.
  func begin(_ id: Int, _ head: ObjectHead) -> Bool {
    let isFirst = state.withLock { state -> Bool in
      if case .asking = state.phase { true } else { false }
    }
    return isFirst ? adopt(id, head) : goOn(id, head)
  }

  /// Makes the download out of the first answer.
  private func adopt(_ id: Int, _ head: ObjectHead) -> Bool {
    if doubts(id, head.tag, head.modified) { return false }
    let size = head.size
    let start = head.range?.lowerBound ?? 0
    if let kept = keptFacts, kept.size == size, kept.isSame(as: head) {
      // The store did not take the condition, but what it has is what is kept.
      state.withLock { state in
        state.transfers[id]?.isStopped = true
        state.confirmed = .now
        state.phase = .unchanged
      }
      return false
    }
    let file: PartFile?
    do throws(Errno) {
      file = try PartFile.make(in: cache.directory, content: content)
    } catch {
      // Where nothing can be kept at all, that was said at the start.
      let line = "no copy of \(object) is kept: cannot make a temporary file: \(error)"
      if cache.directory.refusal == nil { Log.warning(line) } else { Log.debug(line) }
      cache.note(error)
      file = nil
    }
    let partSize = cache.options.partSize
    let isAccepted = state.withLock { state -> Bool in
      guard case .asking = state.phase, var transfer = state.transfers[id], !transfer.isStopped
      else { return false }
      guard head.isPlausible, start == transfer.start else {
        transfer.fault = StoreError(.damaged, "\(object): the store sent another range than asked")
        state.transfers[id] = transfer
        return false
      }
      state.candidate = nil
      state.facts = ObjectFacts(
        size: size ?? 0, tag: head.tag, modified: head.modified, contentType: head.contentType)
      state.isSizeKnown = size != nil
      state.confirmed = .now
      state.fetched = .now
      state.file = file
      state.isDirect = file == nil
      let end = head.range?.upperBound ?? size
      if let size, size > partSize {
        let wanted = transfer.limit ?? min(size, cache.partUnit)
        transfer.limit = min(wanted, size)
        transfer.isElastic = (end ?? size) > wanted
      } else {
        transfer.limit = end
      }
      state.transfers[id] = transfer
      state.phase = .open
      return true
    }
    guard isAccepted else {
      if let file { cache.discard(file) }
      return false
    }
    cache.answered(self)
    state.wakeAll()
    return !state.withLock { state in
      if state.isDirect { state.cutDirect(id, object) }
      return state.isDirect
    }
  }

  /// Puts aside an answer that is of an older version than a listing has shown, once.
  ///
  /// - Returns: whether it is asked for again, past all caches on the way.
  func doubts(_ id: Int, _ tag: String?, _ modified: Timestamp?) -> Bool {
    state.withLock { state -> Bool in
      guard var transfer = state.transfers[id], !transfer.isFresh, let listed = state.listed,
        listed.isNewer(than: tag, modified)
      else { return false }
      transfer.isFresh = true
      transfer.isDoubted = true
      state.transfers[id] = transfer
      return true
    }
  }

  /// Compares a later answer with the first.
  private func goOn(_ id: Int, _ head: ObjectHead) -> Bool {
    let isAccepted = state.withLock { state -> Bool in
      guard var transfer = state.transfers[id], !transfer.isStopped, case .open = state.phase,
        let facts = state.facts
      else { return false }
      guard facts.isSame(as: head) else {
        state.phase = .ended(
          StoreError(.damaged, "\(object) was replaced in the store while it was being read"))
        state.isSuperseded = true
        state.isReplaced = true
        return false
      }
      let start = head.range?.lowerBound ?? 0
      let end = head.range?.upperBound ?? facts.size
      guard head.isPlausible, start <= transfer.next, end > transfer.next else {
        transfer.fault = StoreError(.damaged, "\(object): the store sent another range than asked")
        state.transfers[id] = transfer
        return false
      }
      transfer.next = start
      transfer.isElastic = end > (transfer.limit ?? end)
      state.transfers[id] = transfer
      if head.size != nil { state.isSizeProven = true }
      return true
    }
    if !isAccepted { state.wakeAll() }
    return isAccepted
  }

  /// Writes the next bytes of a transfer.
  ///
  /// - Returns: false when no more are wanted, or these cannot be kept.
  func receive(_ id: Int, _ bytes: UnsafeRawBufferPointer) -> Bool {
    let count = Int64(bytes.count)
    let place = state.withLock { state -> (PartFile, Int64)? in
      guard let transfer = state.transfers[id], !transfer.isStopped, case .open = state.phase,
        let file = state.file, !state.isDirect
      else { return nil }
      guard !state.isSizeKnown || transfer.next <= state.size - count else {
        state.transfers[id]?.fault = StoreError(
          .damaged, "\(object): the store sent more bytes than announced")
        return nil
      }
      return (file, transfer.next)
    }
    guard let (file, position) = place else { return false }
    do throws(Errno) {
      try file.file.write(bytes, at: position)
    } catch {
      Log.warning("no copy of \(object) is kept: cannot write a temporary file: \(error)")
      cache.note(error)
      state.withLock { state in
        state.isDirect = true
        state.cutDirect(id, object)
      }
      state.wakeAll()
      return false
    }
    let goesOn = state.withLock { state -> Bool in
      guard var transfer = state.transfers[id], state.file === file else { return false }
      let (end, overflow) = position.addingReportingOverflow(count)
      guard !overflow else { return false }
      state.present.insert(position..<end)
      state.received &+= count
      state.lastSign = .now
      transfer.next = end
      if transfer.isElastic, let limit = transfer.limit, end >= limit, end < state.size {
        transfer.isStopped = true
      }
      state.transfers[id] = transfer
      return !transfer.isStopped
    }
    cache.lastSign.withLock { $0 = .now }
    state.wakeAll()
    return goesOn
  }

  /// A transfer waits for its turn in the store.
  func noteSign() {
    cache.lastSign.withLock { $0 = .now }
    state.withLock { $0.lastSign = .now }
  }

  /// The facts of what is kept, which the store is asked about.
  var keptFacts: ObjectFacts? {
    switch state.withLock({ $0.candidate }) {
    case .copy(let copy): copy.facts
    case .partial(let partial): partial.facts
    case .download(let download): download.state.withLock { $0.facts }
    case nil: nil
    }
  }

  /// The tag that the store was asked about.
  var asked: String? { keptFacts?.tag }
}

extension Download.State {
  /// Ends a transfer whose bytes cannot be written; without the size no reader can ask by range.
  fileprivate mutating func cutDirect(_ id: Int, _ object: ObjectName) {
    transfers[id]?.isStopped = true
    if !isSizeKnown {
      transfers[id]?.fault = StoreError(.noRoom, "\(object): no room for its bytes on this device")
    }
  }
}

extension ObjectHead {
  /// Whether its numbers fit together, and are such that sums of them cannot overflow.
  fileprivate var isPlausible: Bool {
    let end = range?.upperBound ?? 0
    let most: Int64 = 1 << 60
    return (size ?? 0) >= 0 && (size ?? 0) <= most && (range?.lowerBound ?? 0) >= 0
      && end <= (size ?? most)
  }
}
