import BucketStore
import Platform

/// The uploader: takes the oldest record that may go, tries it, and does what the outcome asks.
extension PendingQueue {
  /// How a try ended.
  enum Outcome {
    case stored(ObjectInfo, Fingerprint)
    /// A deletion is done, or was none of ours to do.
    case deleted
    case failed(StoreError)
    /// Another writer was first, and these are the facts of what it stored.
    case conflict(String, ObjectInfo)
    /// The bytes here are not those that were acknowledged, or are gone.
    case damaged(String)
    /// The record was removed, renamed or changed: what it is now is for another try.
    case overtaken
  }

  enum Step {
    case ran
    /// Nothing may start before this moment; nil when only a change can make it so.
    case idle(Timestamp?)
  }

  /// One uploader thread's turn.
  ///
  /// - Returns: false when the queue closes.
  func sendNext() -> Bool {
    let heard = bell.withLock { $0 }
    if closing.isCancelled { return false }
    if abandonNext() { return true }
    guard case .idle(let until) = step() else { return true }
    // The gate tells nobody here when it opens by itself, so it is looked at now and then.
    var span = Span.seconds(5)
    if let until { span = min(span, max(until.since(options.clock()), .milliseconds(1))) }
    _ = bell.wait(until: .now + span) { $0 == heard ? nil : true }
    return true
  }

  /// Tries the next record, if one may go now, on the calling thread.
  func step() -> Step {
    let now = options.clock()
    let gate = options.gate()
    let call = Call(timeout: options.timeout)
    let limit = max(options.uploads, 1)
    // Looking changes nothing that others wait for; starting does.
    let decision = state.withLock { state -> QueueState.Decision in
      let decision = state.next(now, gate, limit: limit)
      if case .start(let id, let object) = decision, let slot = state.slots[id] {
        slot.flight = Flight(slot.record, call)
        state.schedule.inFlight += 1
        state.schedule.flying.insert(object)
        state.update(slot) { $0.record.state = .uploading }
      }
      return decision
    }
    switch decision {
    case .wait(let until): return .idle(until)
    case .start(let id, _):
      update { _ in }
      // Another one looks after what comes next while this one is busy.
      ring()
      guard let flight = state.withLock({ $0.slots[id]?.flight }) else { return .ran }
      finish(id, flight, run(id, flight))
      return .ran
    }
  }

  // MARK: - A try

  private func run(_ id: PendingID, _ flight: Flight) -> Outcome {
    guard
      let slot = state.withLock({ state in
        state.slots[id].map { ($0.record, $0.lacksBytes) }
      })
    else { return .overtaken }
    let (record, lacksBytes) = slot
    if record.operation == .delete { return delete(record, flight) }
    if lacksBytes { return confirm(record, flight) }
    do throws(Errno) {
      guard let content = try use(id, flight),
        let sums = try content.fingerprint(flight.call.cancellation)
      else { return .overtaken }
      if let known = record.sha256, known != sums.sha256 {
        return .damaged("the bytes here are not those of the first try")
      }
      if record.size != sums.size {
        return .damaged("\(sums.size) of its \(record.size) bytes are here")
      }
      guard let marked = mark(id, flight, sums) else { return .overtaken }
      CrashPoint.reach(.uploadMarked)
      let isFirst = record.attempts == 0 && record.tried.isEmpty
      return send(marked, content, sums, isFirst, flight)
    } catch {
      return .damaged("its bytes cannot be read: \(error)")
    }
  }

  /// Keeps the bytes open for the try.
  private func use(_ id: PendingID, _ flight: Flight) throws(Errno) -> Content? {
    guard let record = begin(id) else { return nil }
    let content: Content
    do throws(Errno) {
      guard record.operation == .put else { throw .noEntry }
      content = try self.content(of: record)
    } catch {
      end(id, nil)
      if error == .noEntry, record.operation != .put { return nil }
      throw error
    }
    flight.content.withLock { $0 = content }
    end(id, nil) { _, slot in
      slot.content = content
      slot.users += 1
    }
    return content
  }

  /// Says on disk that these bytes are about to be sent, here and in what follows on the name.
  ///
  /// - Returns: nil when the record is another by now.
  private func mark(_ id: PendingID, _ flight: Flight, _ sums: Fingerprint) -> PendingRecord? {
    guard let record = begin(id) else { return nil }
    let (isWanted, acknowledgements) = state.withLock { state in
      state.slots[id].map { (!$0.isSuperseded, $0.acknowledgements) } ?? (false, 0)
    }
    guard record.operation == .put, flight.isOf(record), isWanted else {
      end(id, nil)
      return nil
    }
    flight.acknowledgements.withLock { $0 = acknowledgements }
    var marked = record
    marked.state = .uploading
    marked.sha256 = sums.sha256
    if !record.tried.contains(sums) { flight.newlyTried.withLock { $0 = sums } }
    marked.note(tried: sums)
    do throws(Errno) {
      try save(marked)
    } catch {
      // Not needed to be right, only to be quick: a later try compares the bytes. A full disk must
      // not keep the queue from being emptied.
      Log.warning("pending file \(id) is sent without a note of it: \(error)")
    }
    end(id, marked)
    let later = state.withLock { state -> [PendingID] in
      state.slots[id].map { state.later($0).map(\.record.id) } ?? []
    }
    for other in later {
      do throws(Errno) {
        try change(other) { $0.note(tried: sums) }
      } catch {
        Log.warning("pending file \(other) does not know of the try before it: \(error)")
      }
    }
    return marked
  }

  private func send(
    _ record: PendingRecord, _ content: Content, _ sums: Fingerprint, _ isFirst: Bool,
    _ flight: Flight
  ) -> Outcome {
    let attempt = Attempt(
      store: store, record: record, sums: sums, isFirst: isFirst,
      source: ContentSource(content, size: sums.size, flight),
      flight: flight,
      rebase: { base in self.rebase(record.id, base) },
      keep: { (token) throws(StoreError) in
        do throws(Errno) {
          try self.change(record.id, durable: true) { $0.upload = token }
        } catch {
          throw StoreError(.noRoom, "the upload's address cannot be kept: \(error)")
        }
      },
      progress: { sent in
        if flight.tell(sent) { self.update { $0.note(flight.object, .state) } }
      })
    do throws(Attempt.Failure) {
      let info = try attempt.run()
      CrashPoint.reach(.uploadVerified)
      return .stored(info, sums)
    } catch {
      // What it was about is another matter by now.
      if flight.isStopped { return .overtaken }
      switch error {
      case .store(let error): return .failed(error)
      case .conflict(let words, let theirs):
        // A folder that somebody else made too is one folder.
        if ConflictNames.isFolderMark(record.object.key) { return .stored(theirs, sums) }
        return .conflict(words, theirs)
      }
    }
  }

  /// Notes that the store has what an earlier try of ours stored: it is what is replaced from now on.
  private func rebase(_ id: PendingID, _ base: PendingBase) {
    do throws(Errno) {
      try change(id) { record in
        if record.operation == .put { record.base = base }
      }
    } catch {
      // The next try finds the same again.
      Log.warning("pending file \(id): what it replaces is not noted: \(error)")
    }
  }

  /// Remembers to give up an upload that will not be gone on with.
  func giveUpUpload(of record: PendingRecord) {
    guard record.upload != nil else { return }
    update { $0.abandoned.append(record) }
    ring()
  }

  /// Gives up one upload that will not be gone on with.
  ///
  /// - Returns: false when there is none, or nothing may be sent.
  func abandonNext() -> Bool {
    guard options.gate() == .open else { return false }
    let record = state.withLock { state in
      state.phase == .sending ? state.abandoned.popLast() : nil
    }
    guard let record, let token = record.upload else { return false }
    abandon(token, record, Call(timeout: options.timeout))
    return true
  }

  /// Whether the store has the bytes that were handed over when the program ended.
  private func confirm(_ record: PendingRecord, _ flight: Flight) -> Outcome {
    do throws(StoreError) {
      let info = try store.info(record.object, flight.call)
      return record.tried.contains { $0.match(info) != .different }
        ? .deleted : .damaged("its bytes are gone, and the store has others")
    } catch {
      if error.kind == .notFound, store.session.isCredible {
        return .damaged("its bytes are gone, and the store does not have them")
      }
      return .failed(error)
    }
  }

  /// Gives up the upload that was opened for a file which is gone.
  func abandon(_ token: UploadToken, _ record: PendingRecord, _ call: Call) {
    let request = PutRequest(
      object: record.object, size: record.size, contentType: record.contentType,
      userMetadata: [:], condition: .none)
    do throws(StoreError) {
      try store.abandonUpload(token, request, call)
    } catch {
      // The store forgets it by itself after a while; until then it takes up room there.
      Log.info(
        "\(options.title(record.object)): the upload of a file that was removed stays open: \(error)"
      )
    }
  }

  /// Deletes what earlier tries stored, and nothing else.
  private func delete(_ record: PendingRecord, _ flight: Flight) -> Outcome {
    if let token = record.upload { abandon(token, record, flight.call) }
    guard !record.tried.isEmpty else { return .deleted }
    do throws(StoreError) {
      let info = try store.info(record.object, flight.call)
      guard record.tried.contains(where: { $0.isClaimed(by: info, in: store.writing) }) else {
        if !ConflictNames.isFolderMark(record.object.key) {
          receiver.withLock { $0 }?.changedElsewhere(record.object, info)
        }
        return .deleted
      }
      try store.delete(record.object, flight.call)
      receiver.withLock { $0 }?.storeChanged(record.object)
      return .deleted
    } catch {
      if error.kind == .notFound, store.session.isCredible { return .deleted }
      return .failed(error)
    }
  }
}
