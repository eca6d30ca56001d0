package import BucketStore
package import Platform

/// Changes of what is pending that are no changes of bytes.
extension PendingQueue {
  /// Sets times and mode of a pending file.
  ///
  /// - Throws: `Errno`; ENOENT when nothing is pending under the name, EAGAIN for who may not wait.
  package func set(
    _ attributes: PendingAttributes, of object: ObjectName, mayWait: Bool = true
  ) throws(Errno) {
    try changeShown(object, mayWait: mayWait) { (record) throws(Errno) in
      if let mode = attributes.mode { record.mode = mode & 0o7777 }
      if let modified = attributes.modified { record.modified = modified }
    }
    guard let modified = attributes.modified else { return }
    state.withLock { state in
      state.shown(object)?.content?.shape.withLock { $0.modified = modified }
    }
  }

  /// Sets an extended attribute of a pending file; nil removes it.
  ///
  /// - Throws: `Errno`; ENOENT, ENOSPC beyond `attributeLimit`, ENODATA when removing what is not
  ///   there.
  package func setAttribute(_ name: ByteString, _ value: [UInt8]?, of object: ObjectName)
    throws(Errno)
  {
    try changeShown(object, mayWait: true) { (record) throws(Errno) in
      if value == nil, record.attributes[name] == nil { throw .noAttribute }
      record.attributes[name] = value
      guard Self.size(of: record.attributes) <= Self.attributeLimit else { throw .noSpace }
    }
  }

  private func changeShown(
    _ object: ObjectName, mayWait: Bool, _ body: (inout PendingRecord) throws(Errno) -> Void
  ) throws(Errno) {
    while true {
      guard let id = state.withLock({ $0.shown(object)?.record.id }) else { throw .noEntry }
      guard let record = try begin(id, mayWait: mayWait) else { continue }
      var changed = record
      do throws(Errno) {
        guard record.object == object else { throw .noEntry }
        try body(&changed)
        if changed != record { try save(changed, mayWait: mayWait) }
      } catch {
        end(id, nil)
        throw error
      }
      return end(id, changed) { state, slot in
        if changed != record { state.acknowledge(slot) }
        state.note(object, .content)
      }
    }
  }

  // MARK: - Rename

  /// Gives a pending file another name, in place of what is pending there.
  ///
  /// Also while it is being sent: then the store ends with the new name only.
  /// - Parameter base: what the store has under the new name; where something is pending there,
  ///   its base is used instead. Asked for under the queue's lock, once nothing is: what was stored
  ///   there a moment ago is known by then.
  /// - Throws: `Errno`; ENOENT when nothing is pending under the old name, EBUSY when the new one is
  ///   just being given to a file that another writer was faster with.
  package func rename(
    _ object: ObjectName, to target: ObjectName, base: @autoclosure () -> PendingBase
  ) throws(Errno) {
    guard object != target else { return }
    try retireEarlier(object)
    guard let id = state.withLock({ $0.shown(object)?.record.id }), let record = begin(id) else {
      throw .noEntry
    }
    guard record.object == object, record.operation == .put else {
      end(id, nil)
      throw .noEntry
    }
    // A try that runs, or one that ran, may have left something under the old name.
    let flight = state.withLock { $0.slots[id]?.flight }
    let type = contentTypes.type(for: target.key)
    let mayBeThere = flight != nil || !record.tried.isEmpty
    let now = options.clock()
    let renamed = update { state -> (PendingRecord, PendingRecord?)? in
      if state.coming.isForAside(target) { return nil }
      state.coming.rename(to: target)
      var moved = record
      moved.object = target
      moved.contentType = type
      moved.placed = state.stamp(now)
      moved.tried = []
      moved.conflictOf = nil
      moved.upload = nil
      moved.attempts = 0
      moved.nextTry = nil
      let mayDoNow = record.state == .failed && record.failure?.concernsName ?? false
      if record.state == .uploading || mayDoNow {
        moved.state = .waiting
        moved.failure = nil
      }
      if let old = state.lastPut(target) {
        moved.follow(old.record)
      } else {
        moved.base = base()
      }
      moved.learn(of: state.deletions(of: target))
      guard mayBeThere else { return (moved, nil) }
      let stamp = state.stamp(now)
      moved.left = PendingRecord.LeftName(
        id: PendingID(value: stamp), object: object, tried: record.tried)
      return (moved, record.deletion(id: PendingID(value: stamp), now))
    }
    guard let (moved, deletion) = renamed else {
      end(id, nil)
      throw .busy
    }
    do throws(Errno) {
      try save(moved)
    } catch {
      end(id, nil) { state, _ in state.coming.isRenamed(to: target) }
      throw error
    }
    CrashPoint.reach(.renameMoved)
    let flights = Locked<[Flight]>(flight.map { [$0] } ?? [])
    end(id, moved) { state, slot in
      state.coming.isRenamed(to: target)
      // Its content is the same, but the chain of its old name goes on without it.
      if let deletion {
        let slot = Slot(deletion)
        slot.isUncommitted = true
        state.insert(slot)
      }
      state.acknowledge(slot)
      state.catchUp(slot, base)
      if slot.record.state != .writing, slot.record.failure?.kind != PendingFailure.noRoom {
        let stopped = state.supersedeEarlier(slot)
        flights.withLock { $0 += stopped }
      }
    }
    for flight in flights.withLock({ $0 }) { flight.stop() }
    if deletion != nil { try leave(id) }
  }

  /// Gives up what the file under a name has replaced: none of it may come back under the name.
  private func retireEarlier(_ object: ObjectName) throws(Errno) {
    let found = state.withLock { state -> (id: PendingID, earlier: [PendingID])? in
      guard let slot = state.shown(object) else { return nil }
      let earlier = state.earlier(slot).filter { $0.record.operation == .put }
      return (slot.record.id, earlier.map(\.record.id))
    }
    guard let (id, earlier) = found, !earlier.isEmpty else { return }
    func isDurable() -> Bool { !state.withLock { $0.uncommitted.contains(id) } }
    if !isDurable() {
      do throws(Errno) {
        try commit()
      } catch  where isDurable() {
        // It was the failure of another file.
      }
    }
    for id in earlier { try retire(id) }
  }

  /// Writes the record that deletes the name a renamed one left, which then may run.
  private func leave(_ id: PendingID) throws(Errno) {
    guard let left = state.withLock({ $0.slots[id]?.record.left }),
      let deletion = begin(left.id)
    else { return }
    do throws(Errno) {
      try save(deletion)
    } catch {
      end(left.id, nil)
      throw error
    }
    CrashPoint.reach(.renameLeft)
    // The deletion waits for this: a start must not make it anew once it has run.
    end(left.id, nil)
    try change(id) { $0.left = nil }
    update { state in
      if let slot = state.slots[left.id] { state.acknowledge(slot) }
    }
  }

  // MARK: - Remove

  /// Removes what is pending under a name; what an upload on its way stores is deleted again.
  ///
  /// Open handles go on reading and writing the bytes, which are never sent.
  /// - Throws: `Errno`; ENOENT when nothing is pending under the name, also when what was pending
  ///   has been stored meanwhile.
  package func remove(_ object: ObjectName) throws(Errno) {
    let (shown, ids) = state.withLock { state -> (PendingID?, [PendingID]) in
      guard let shown = state.shown(object)?.record.id else { return (nil, []) }
      let ids = (state.chains[object] ?? []).reversed().filter { id in
        state.slots[id]?.record.operation == .put
      }
      return (shown, ids)
    }
    guard let shown else { throw .noEntry }
    var wasThere = false
    for id in ids {
      if try retire(id), id == shown { wasThere = true }
    }
    if !wasThere { throw .noEntry }
  }

  /// Removes every file of the owner, bytes included.
  ///
  /// - Returns: how many that were.
  /// - Throws: `Errno`.
  package func clear() throws(Errno) -> Int {
    let all = entries
    for entry in all { try retire(entry.id) }
    return all.count
  }

  /// Gives a record up that a later one of its name has replaced, durably.
  func retireSuperseded(_ id: PendingID) {
    let isDue = state.withLock { state -> Bool in
      // One on its way is given up when that try returns.
      guard let slot = state.slots[id], slot.flight == nil, let by = slot.supersededBy else {
        return false
      }
      return !state.uncommitted.contains(by)
    }
    guard isDue else { return }
    do throws(Errno) {
      try retire(id)
    } catch {
      Log.error("a replaced pending file stays in the queue: \(error)")
    }
  }

  /// Takes out a record that was never acknowledged.
  func discard(_ id: PendingID) {
    do throws(Errno) {
      try retire(id)
    } catch {
      Log.error("pending file \(id), which is not to be sent, stays in the queue: \(error)")
    }
  }

  /// Takes a record out: at once, or as a deletion of what its tries may have stored.
  ///
  /// - Returns: false when it had gone by itself.
  @discardableResult
  func retire(_ id: PendingID) throws(Errno) -> Bool {
    guard let record = begin(id) else { return false }
    let (flight, isKnown) = state.withLock { state -> (Flight?, Bool) in
      guard let slot = state.slots[id] else { return (nil, true) }
      // A later record that knows of the tries will replace or delete what they stored.
      let known = state.later(slot).contains { later in
        record.tried.allSatisfy { later.record.tried.contains($0) }
      }
      return (slot.flight, known)
    }
    do throws(Errno) {
      if flight == nil, record.tried.isEmpty || isKnown {
        try directory.remove(id)
        giveUpUpload(of: record)
        update { state in
          guard let slot = state.slots[id] else { return }
          slot.isBusy = false
          state.remove(id)
        }
        return true
      }
      let now = options.clock()
      let deletion = record.deletion(id: id, now)
      try save(deletion)
      try directory.removeData(id)
      end(id, deletion) { state, slot in
        slot.content = nil
        slot.users = 0
        slot.writers = 0
        slot.supersededBy = nil
        state.acknowledge(slot)
      }
      flight?.stop()
      return true
    } catch {
      end(id, nil)
      throw error
    }
  }
}

extension PendingRecord {
  /// The record that deletes what this one's tries may have stored under its name.
  func deletion(id: PendingID, _ now: Timestamp) -> PendingRecord {
    var deletion = PendingRecord(
      id: id, object: object, operation: .delete, created: now, placed: max(placed, id.value),
      contentType: contentType, size: 0, modified: modified, mode: mode, base: .absent,
      state: .waiting, owner: owner)
    deletion.tried = tried
    deletion.upload = upload
    return deletion
  }
}

extension PendingFailure {
  /// Whether another name is another matter: the store may take the file under it.
  fileprivate var concernsName: Bool {
    !isRetryable && !isOfParts
  }
}

extension QueueState {
  /// Tells a record that has just taken its name what happened to the one before it while it was
  /// being written: that one was tried, or stored.
  mutating func catchUp(_ slot: Slot, _ base: () -> PendingBase) {
    let before = slot.record
    if let old = earlier(slot).last(where: { $0.record.operation == .put }) {
      slot.record.follow(old.record)
    } else {
      slot.record.base = base()
    }
    if slot.record != before { slot.needsSave = true }
  }
}
