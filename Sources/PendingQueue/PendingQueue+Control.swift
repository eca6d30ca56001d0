package import BucketStore
package import Platform

/// What a person, or the network's state, says to the queue.
extension PendingQueue {
  /// Lets what failed, or waits for its next try, be tried at once.
  ///
  /// - Parameter object: nil for all.
  /// - Returns: how many records that were.
  @discardableResult
  package func retry(_ object: ObjectName? = nil) -> Int {
    let ids = state.withLock { state -> [PendingID] in
      let slots =
        object.map { state.shown($0).map { [$0] } ?? [] }
        ?? state.slots.values.filter { $0.record.owner == state.owner }
      return slots.filter { slot in
        slot.record.state == .failed || slot.record.nextTry != nil || slot.notBefore != nil
      }.map(\.record.id)
    }
    var count = 0
    for id in ids {
      do throws(Errno) {
        if try retry(id) { count += 1 }
      } catch {
        Log.error("pending file \(id) cannot be tried again: \(error)")
      }
    }
    gateChanged()
    return count
  }

  private func retry(_ id: PendingID) throws(Errno) -> Bool {
    guard let record = begin(id) else { return false }
    var changed = record
    if record.state == .failed {
      changed.state = .waiting
      // What is here now is what the person wants sent.
      changed.sha256 = nil
      if record.failure?.isOfParts ?? false { changed.failure = nil }
      let size = state.withLock { state in
        state.slots[id]?.content?.shape.withLock { shape in
          shape.missing = nil
          return shape.size
        }
      }
      if let size { changed.size = size }
    }
    changed.nextTry = nil
    do throws(Errno) {
      if changed != record { try save(changed) }
    } catch {
      end(id, nil)
      throw error
    }
    end(id, changed) { _, slot in slot.notBefore = nil }
    return true
  }

  /// Says that the gate may have opened, or the owner's session changed.
  package func gateChanged() {
    update { state in
      state.schedule.resume()
      for slot in state.slots.values where slot.notBefore != nil {
        slot.notBefore = nil
        state.schedule.consider(slot.record.id)
      }
    }
  }

  /// Another user signed in: shows and sends that user's records instead.
  package func setOwner(_ owner: String) {
    let flights = update { state -> [Flight] in
      guard owner != state.owner else { return [] }
      state.setOwner(owner)
      state.schedule.resume()
      return state.slots.values.compactMap(\.flight)
    }
    for flight in flights { flight.call.cancellation.cancel() }
  }

  /// Waits until everything is stored, or cannot be.
  ///
  /// - Parameters:
  ///   - deadline: nil waits for ever.
  ///   - cancellation: ends the waiting with `outOfTime`.
  package func wait(until deadline: Instant?, _ cancellation: Cancellation) -> WaitOutcome {
    while true {
      let gate = options.gate()
      let (counts, version) = state.withLock { ($0.counts, $0.version) }
      if counts.unsent == 0 { return counts.failed == 0 ? .stored : .failed(counts.failed) }
      if gate != .open { return .offline }
      if cancellation.isCancelled { return .outOfTime }
      // The gate tells nobody here when it closes, so it is looked at now and then.
      let slice = Instant.now + .milliseconds(200)
      if let deadline, deadline < .now { return .outOfTime }
      _ = state.wait(until: deadline.map { min($0, slice) } ?? slice) {
        $0.version == version ? nil : true
      }
    }
  }
}
