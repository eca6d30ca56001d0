import Glibc
package import Platform

/// How what was written becomes acknowledged, and what was acknowledged durable.
extension PendingQueue {
  /// How long acknowledged files are gathered before they are made durable together.
  static let gathering = Span.milliseconds(250)

  /// The record says "writing" before its bytes change, so that a crash in the middle is seen, and
  /// goes on saying so until `endChange`, whatever another handle acknowledges meanwhile.
  ///
  /// - Throws: `Errno`; EAGAIN for who may not wait.
  func prepareChange(of content: Content, mayWait: Bool) throws(Errno) {
    let isNoted = content.shape.withLock { shape in
      shape.changes += 1
      return shape.isDirty
    }
    if isNoted { return }
    if isCurrent(content) {
      do throws(Errno) {
        try changeUnsent(content, mayWait: mayWait) { record in
          guard record.operation == .put else { return }
          giveUpUpload(of: record)
          record.state = .writing
          record.isSynced = false
          record.sha256 = nil
          record.upload = nil
          record.failure = nil
        }
      } catch {
        endChange(of: content, mayWait: mayWait)
        throw error
      }
    }
    content.shape.withLock { $0.isDirty = true }
  }

  /// Changes a record whose bytes are about to change, once no try reads them: one that somebody
  /// waits for while the file is open.
  private func changeUnsent(
    _ content: Content, mayWait: Bool, _ body: (inout PendingRecord) -> Void
  ) throws(Errno) {
    while let record = try begin(content.id, mayWait: mayWait) {
      let flight = state.withLock { state -> Flight? in
        guard let slot = state.slots[content.id], slot.content === content else { return nil }
        return slot.flight
      }
      if let flight {
        end(content.id, nil)
        guard mayWait else { throw .again }
        flight.stop()
        _ = state.wait { $0.slots[content.id]?.flight === flight ? nil : true }
        continue
      }
      var changed = record
      body(&changed)
      do throws(Errno) {
        if changed != record { try save(changed, mayWait: mayWait) }
      } catch {
        end(content.id, nil)
        throw error
      }
      return end(content.id, changed)
    }
  }

  /// A change is done, or has failed: what was to be acknowledged in the middle of it is now.
  func endChange(of content: Content, mayWait: Bool) {
    let isDue = content.shape.withLock { shape in
      shape.changes -= 1
      guard shape.changes == 0, shape.isFlushDue else { return false }
      shape.isFlushDue = false
      return true
    }
    guard isDue else { return }
    if mayWait { return flushAnyway(content) }
    do throws(Errno) {
      try flush(content, mayWait: false)
    } catch {
      // The committer has the time.
      update { $0.due.append(content) }
    }
  }

  /// Acknowledges what was written; while another handle writes, once that has.
  ///
  /// - Throws: `Errno`; EAGAIN for who may not wait, and then nothing has happened.
  func flush(_ content: Content, mayWait: Bool = true) throws(Errno) {
    guard content.shape.withLock({ $0.isDirty }),
      let record = try begin(content.id, mayWait: mayWait)
    else { return }
    guard record.operation == .put, isCurrent(content) else { return end(content.id, nil) }
    // Under the record's turn: a change that begins now waits for it to say "writing".
    let complete = content.shape.withLock { shape -> Content.Shape? in
      guard shape.isDirty else { return nil }
      guard shape.changes == 0 else {
        shape.isFlushDue = true
        return nil
      }
      shape.isDirty = false
      return shape
    }
    guard let shape = complete else { return end(content.id, nil) }
    var changed = record
    changed.acknowledge(shape)
    var failure: Errno?
    do throws(Errno) {
      try save(changed, mayWait: mayWait)
    } catch {
      if error == .again {
        content.shape.withLock { $0.isDirty = true }
        end(content.id, nil)
        throw error
      }
      // The bytes are here, and the committer goes on trying to write their record.
      failure = error
    }
    let flights = Locked<[Flight]>([])
    let hasFailed = failure != nil
    end(content.id, changed) { state, slot in
      slot.needsSave = hasFailed
      slot.notBefore = nil
      state.acknowledge(slot)
      // What is not whole takes nobody's place.
      if shape.missing != nil { return }
      let stopped = state.supersedeEarlier(slot)
      flights.withLock { $0 = stopped }
    }
    for flight in flights.withLock({ $0 }) { flight.stop() }
    if let failure { throw failure }
  }

  /// Makes the bytes as written so far durable, and a record that says so.
  func sync(_ content: Content) throws(Errno) {
    try directory.sync(content.file, of: content.id)
    guard isCurrent(content) else { return }
    guard let record = begin(content.id) else { return }
    let isDirty = content.shape.withLock { $0.isDirty }
    var changed = record
    if isDirty {
      let shape = content.shape.withLock { $0 }
      changed.size = shape.size
      changed.modified = shape.modified
      // What lacks a part is whole by no sync.
      changed.isSynced = shape.missing == nil
    }
    // While a file is being written its record only says that the bytes count: once is enough.
    if isDirty && record.isSynced { return end(content.id, nil) }
    do throws(Errno) {
      try save(changed, durable: true)
    } catch {
      end(content.id, nil)
      throw error
    }
    end(content.id, changed)
  }

  /// Lets a handle go.
  func close(_ content: Content, isWriter: Bool) {
    if isWriter { flushAnyway(content) }
    update { state in
      guard let slot = state.slots[content.id], slot.content === content else { return }
      if isWriter { slot.writers -= 1 }
      state.release(slot)
      state.schedule.consider(content.id)
      if let first = state.chains[slot.record.object]?.first { state.schedule.consider(first) }
    }
  }

  /// Acknowledges what was written where nobody can be told that it failed.
  private func flushAnyway(_ content: Content) {
    do throws(Errno) {
      try flush(content)
    } catch {
      Log.error("pending file \(content.id): its record could not be written: \(error)")
    }
  }

  private func isCurrent(_ content: Content) -> Bool {
    state.withLock { state in
      guard let slot = state.slots[content.id] else { return false }
      return slot.content === content && !slot.isSuperseded
    }
  }

  // MARK: - The committer

  /// Waits for acknowledged files and makes them durable together.
  ///
  /// - Returns: false when the queue closes and nothing is left.
  func commitNext() -> Bool {
    let closing = state.wait { state -> Bool? in
      if state.phase == .closing { return true }
      return state.uncommitted.isEmpty && state.due.isEmpty ? nil : false
    }
    flushDue()
    if closing == false {
      _ = self.closing.sleep(until: .now + Self.gathering)
    }
    do throws(Errno) {
      try commit()
    } catch {
      // Told by the records concerned and in the log.
    }
    // What could not be kept, on a full disk say, is tried again after a while.
    let hasFailed = state.withLock { state in
      state.uncommitted.contains { state.slots[$0]?.isUncommitted == false }
    }
    if hasFailed { _ = self.closing.sleep(until: .now + .seconds(1)) }
    return state.withLock { $0.phase != .closing }
  }

  /// Acknowledges what a thread that may not wait has left to be acknowledged.
  private func flushDue() {
    let due = state.withLock { state in
      defer { state.due = [] }
      return state.due
    }
    for content in due { flushAnyway(content) }
  }

  /// Makes all that is acknowledged durable: bytes, then records, then names. Waits for the disk.
  ///
  /// One at a time: who comes second finds all of the first one's work done.
  /// - Throws: `Errno`, the first failure; the records concerned stay to be made durable.
  package func commit() throws(Errno) {
    _ = state.wait { state -> Bool? in
      if state.isCommitting { return nil }
      state.isCommitting = true
      return true
    }
    defer { update { $0.isCommitting = false } }
    try commitBatch()
  }

  private func commitBatch() throws(Errno) {
    let taken = state.withLock { state in
      state.uncommitted.compactMap { id in state.slots[id].map { (id, $0.acknowledgements) } }
    }
    guard !taken.isEmpty else { return }
    let batch = taken.map(\.0).sorted()
    var failures: [PendingID: Errno] = [:]
    for id in batch {
      do throws(Errno) { try saveIfNeeded(id) } catch { failures[id] = error }
    }
    // A few by themselves; many by one call, which also writes what others have not written yet.
    if batch.count < 8 {
      for id in batch where failures[id] == nil {
        do throws(Errno) { try directory.sync("\(id).data") } catch .noEntry {
          // Removed meanwhile.
        } catch { failures[id] = error }
      }
      CrashPoint.reach(.dataSynced)
      for id in batch where failures[id] == nil {
        do throws(Errno) { try directory.sync("\(id).json") } catch .noEntry {
          // Removed meanwhile.
        } catch { failures[id] = error }
      }
    }
    do throws(Errno) {
      if batch.count < 8 { try directory.syncFolder() } else { try directory.syncAll() }
    } catch {
      for id in batch { failures[id] = error }
    }
    CrashPoint.reach(.committed)
    finishCommit(taken, failures)
    if let first = batch.lazy.compactMap({ failures[$0] }).first { throw first }
  }

  private func finishCommit(_ taken: [(PendingID, UInt64)], _ failures: [PendingID: Errno]) {
    for (id, error) in failures { Log.error("pending file \(id) is not durable yet: \(error)") }
    let superseded = update { state -> [PendingID] in
      var superseded: [PendingID] = []
      for (id, acknowledgements) in taken {
        guard let slot = state.slots[id], slot.acknowledgements == acknowledgements else {
          continue
        }
        // Sent all the same: the store is the best place for what this disk cannot keep.
        slot.isUncommitted = false
        if let error = failures[id] {
          guard slot.record.state != .failed else { continue }
          slot.record.failure = PendingFailure(
            kind: PendingFailure.device, reason: "this device could not keep it safely: \(error)",
            isRetryable: true)
          state.note(slot.record.object, .state)
        } else {
          state.uncommitted.remove(id)
          superseded += slot.supersedes
          slot.supersedes = []
        }
        state.schedule.consider(id)
      }
      return superseded
    }
    for id in superseded { retireSuperseded(id) }
  }

  private func saveIfNeeded(_ id: PendingID) throws(Errno) {
    guard state.withLock({ $0.slots[id]?.needsSave ?? false }), let record = begin(id) else {
      return
    }
    do throws(Errno) {
      try save(record)
    } catch {
      end(id, nil)
      throw error
    }
    end(id, nil) { _, slot in slot.needsSave = false }
  }
}

extension QueueState {
  /// Something of a record was acknowledged, and is to be made durable.
  mutating func acknowledge(_ slot: Slot) {
    slot.isUncommitted = true
    slot.acknowledgements &+= 1
    uncommitted.insert(slot.record.id)
  }

  /// One user of a record's bytes lets go.
  mutating func release(_ slot: Slot) {
    slot.users -= 1
    if slot.users == 0 { slot.content = nil }
  }
}

extension PendingRecord {
  /// The bytes are complete as they are.
  mutating func acknowledge(_ shape: Content.Shape) {
    size = shape.size
    modified = shape.modified
    state = .waiting
    isSynced = false
    sha256 = nil
    upload = nil
    failure = nil
    if let missing = shape.missing {
      state = .failed
      failure = PendingFailure(
        kind: PendingFailure.noRoom,
        reason: "this device had no room for all of it: its writer could not write what follows"
          + " byte \(missing.lowerBound)", isRetryable: false)
    }
    attempts = 0
    nextTry = nil
  }
}
