import BucketStore
import Platform

extension Download {
  private enum Next {
    case nothing
    case check(PartFile, ObjectFacts)
    case retire(Partial?, PartFile?)
  }

  /// Looks at what there is to do after a transfer has ended or a reader has left: check bytes
  /// that are all there, or let go of a download that nobody has open. Blocks.
  func settle() {
    let partSize = cache.options.partSize
    let next = state.withLock { state -> Next in
      switch state.phase {
      case .open:
        if state.isSizeKnown, let file = state.file, let facts = state.facts, !state.isDirect,
          state.present.isWhole(facts.size)
        {
          state.phase = .checking
          return .check(file, facts)
        }
        guard state.readers == 0, state.transfers.isEmpty else { return .nothing }
        state.phase = .closed
        state.isSettled = true
        return .retire(state.partial(over: partSize), state.file)
      case .ended:
        guard state.readers == 0, state.transfers.isEmpty, !state.isSettled else {
          return .nothing
        }
        state.isSettled = true
        return .retire(nil, state.file)
      case .asking, .unchanged, .checking, .whole, .closed: return .nothing
      }
    }
    state.wakeAll()
    switch next {
    case .nothing: break
    case .check(let file, let facts): check(file, facts)
    case .retire(let partial, let file):
      discardSuspect()
      cache.retire(self, keeping: partial, of: file)
    }
  }

  /// Lets go of it whoever has it open, since the cache is being closed.
  func end() {
    let partSize = cache.options.partSize
    let (partial, file) = state.withLock { state -> (Partial?, PartFile?) in
      switch state.phase {
      case .open, .ended:
        let partial = state.partial(over: partSize)
        state.phase = .ended(StoreError(.cancelled, "\(object): the cache was closed"))
        state.isSettled = true
        return (partial, state.file)
      case .asking, .unchanged, .checking, .whole, .closed: return (nil, nil)
      }
    }
    state.wakeAll()
    guard let file else { return }
    discardSuspect()
    cache.retire(self, keeping: partial, of: file)
  }

  /// Compares all bytes with the checksum that the tag is, else with the SHA-256 that the writer
  /// left in the user's metadata, where there is one.
  private func check(_ file: PartFile, _ facts: ObjectFacts) {
    let isMD5 = Checksum.md5(of: facts.tag) != nil
    let expected = Checksum(tag: facts.tag, sha256: isMD5 ? nil : writtenDigest(facts))
    let actual: String?
    do throws(Errno) {
      // Who waits for the bytes goes on waiting as long as the disk brings them.
      actual = try file.file.digest(isMD5 ? .md5 : .sha256, size: facts.size) { count in
        state.withLock { state in
          state.received &+= count
          state.lastSign = .now
        }
      }
    } catch {
      Log.warning("\(object): cannot read the download back: \(error)")
      actual = nil
    }
    if let actual, expected.map({ $0.digest == actual }) ?? true {
      accept(file, facts, isVerified: expected != nil, sha256: isMD5 ? nil : actual)
    } else {
      reject(file)
    }
  }

  /// The SHA-256 that the writer of this very version left; nil when there is none, or the store
  /// does not say.
  private func writtenDigest(_ facts: ObjectFacts) -> String? {
    guard facts.tag != nil else { return nil }
    do throws(StoreError) {
      let call = Call(timeout: cache.options.timeout, cancellation: checking)
      let info = try cache.store.info(object, call)
      return info.tag == facts.tag ? info.sha256 : nil
    } catch {
      Log.debug("\(object): its facts are not known: \(error)")
      return nil
    }
  }

  private func accept(_ file: PartFile, _ facts: ObjectFacts, isVerified: Bool, sha256: String?) {
    let (suspect, handed, isSuperseded) = state.withLock {
      ($0.suspect, $0.handed.ranges, $0.isSuperseded)
    }
    var isConsistent = true
    if let suspect {
      do throws(Errno) {
        isConsistent = try file.agrees(with: suspect, in: handed)
      } catch {
        isConsistent = false
      }
      cache.discard(suspect)
    }
    state.withLock { state in
      state.suspect = nil
      if isConsistent {
        state.phase = .whole
      } else {
        // The file becomes a copy for others; who was given the wrong bytes gets no more.
        state.file = nil
        state.phase = .ended(
          StoreError(.damaged, "\(object): bytes that were read did not match the checksum"))
      }
    }
    if isSuperseded {
      markSettled()
      cache.retire(self, keeping: nil, of: file)
    } else {
      cache.publish(
        self, file, facts, isVerified: isVerified, sha256: sha256, isNewContent: !isConsistent)
    }
    state.wakeAll()
  }

  /// Bytes that do not match are fetched once more; if those do not match either, it is over.
  private func reject(_ file: PartFile) {
    let isSecond = state.withLock { $0.isSecondTry }
    Log.warning("\(object): the bytes do not match the checksum\(isSecond ? " again" : "")")
    if isSecond {
      giveUp(
        StoreError(.damaged, "\(object): the bytes do not match the store's checksum"), file)
      return
    }
    let again: PartFile
    do throws(Errno) {
      again = try PartFile.make(in: cache.directory, content: content)
    } catch {
      giveUp(
        StoreError(.damaged, "\(object): damaged, and no file to fetch it into again: \(error)"),
        file)
      return
    }
    let (id, isSuspectKept) = state.withLock { state -> (Int, Bool) in
      let isKept = !state.handed.ranges.isEmpty
      state.isSecondTry = true
      // What is still on its way belongs to the bytes that were wrong.
      for id in state.transfers.keys { state.transfers[id]?.isStopped = true }
      state.suspect = isKept ? file : nil
      state.file = again
      state.present = PartMap()
      state.phase = .open
      var transfer = Transfer(
        start: 0, limit: state.size, call: Call(timeout: cache.options.timeout))
      transfer.isFresh = true
      return (state.add(transfer), isKept)
    }
    if !isSuspectKept { cache.discard(file) }
    run(id)
  }

  private func giveUp(_ error: StoreError, _ file: PartFile) {
    state.withLock { state in
      state.phase = .ended(error)
      state.isSuperseded = true
      state.file = nil
    }
    cache.discard(file)
    discardSuspect()
    markSettled()
    cache.retire(self, keeping: nil, of: nil)
  }

  /// Removes bytes that were kept to compare with, where nothing is left to compare.
  private func discardSuspect() {
    let suspect = state.withLock { state -> PartFile? in
      defer { state.suspect = nil }
      return state.suspect
    }
    if let suspect { cache.discard(suspect) }
  }

  /// The file has become a copy, or never will.
  func markSettled() {
    state.withLock { $0.isSettled = true }
    state.wakeAll()
  }
}

extension Download.State {
  /// What is worth keeping when nobody has it open: parts of a large object with a tag.
  func partial(over partSize: Int64) -> Partial? {
    guard let facts, let file, facts.tag != nil, facts.size > partSize, !isSuperseded,
      isSizeKnown, !isSecondTry, !isDoubtful, present.count > 0, let stamp = file.stamp
    else { return nil }
    return Partial(
      path: file.path, stamp: stamp, facts: facts, present: present, fetched: fetched, used: .now)
  }
}
