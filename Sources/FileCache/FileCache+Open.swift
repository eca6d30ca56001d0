package import BucketStore
import Glibc
package import Platform

extension FileCache {
  /// Opens a copy, or a download, that the store has confirmed within `max_age`.
  ///
  /// Touches memory, and opens one local file: it waits for nothing unless it may repair.
  /// - Parameter repairing: whether a file that is not what its row says is looked into, which may
  ///   take reading it whole, and a commit.
  /// - Returns: nil when the store must be asked.
  package func openConfirmed(_ object: ObjectName, repairing: Bool = true) -> OpenFile? {
    guard options.maxAge > .zero else { return nil }
    let now = Timestamp.now
    let (copy, download) = state.withLock { ($0.copies[object], $0.downloads[object]) }
    if let download, let file = open(download, confirmedWithin: options.maxAge, at: now) {
      return file
    }
    guard let copy, copy.isConfirmed(within: options.maxAge, at: now) else { return nil }
    return open(object, copy, repairing: repairing)
  }

  /// Opens the copy of an object, however old it is. Never the network.
  ///
  /// - Returns: nil when there is none, or its file is not what it was.
  package func openKept(_ object: ObjectName) -> OpenFile? {
    guard let copy = state.withLock({ $0.copies[object] }) else { return nil }
    return open(object, copy)
  }

  /// Opens an object: the store is asked first, and what is kept answers where it cannot be, or
  /// where it says that nothing has changed.
  ///
  /// Returns once status and headers are in; reading waits for the bytes.
  /// - Parameter expected: the object's size as far as it is known; of a large object only a part
  ///   is asked for.
  /// - Parameter listed: the version that a listing has shown, if one has: the store is asked past
  ///   all caches on the way when its answer is of an older one.
  /// - Throws: `StoreError` as the store gave it when nothing kept can answer; `notFound` when the
  ///   store says so and may be believed, and then nothing is kept any more; `cancelled`.
  package func open(
    _ object: ObjectName, expected: Int64? = nil, listed: ListedVersion? = nil, _ call: Call
  ) throws(StoreError) -> OpenFile {
    var last = StoreError(.server, "\(object) changes faster than it can be opened")
    for _ in 0..<5 {
      if let file = openConfirmed(object) { return file }
      let question = ask(object, expected: expected, listed, call)
      let phase: Download.Phase
      do throws(StoreError) {
        phase = try question.waitForAnswer(call)
      } catch {
        question.leave()
        guard error.kind != .cancelled else { throw error }
        return try fallBack(to: object, from: question, error)
      }
      switch phase {
      case .open, .checking, .whole: return OpenFile(question, in: self)
      case .unchanged:
        question.leave()
        if let file = openCandidate(of: question) { return file }
      case .ended(let error):
        let isReplaced = question.state.withLock { $0.isReplaced }
        question.leave()
        // The one who asked has gone, and somebody else still wants to know; or the object was
        // replaced before anybody saw a byte of it.
        if isReplaced || (error.kind == .cancelled && !call.cancellation.isCancelled) {
          last = error
          continue
        }
        return try fallBack(to: object, from: question, error)
      case .asking, .closed: question.leave()
      }
    }
    throw last
  }

  /// Asks the store about an object, or joins who is asking already. The caller counts as reader.
  private func ask(
    _ object: ObjectName, expected: Int64?, _ listed: ListedVersion?, _ call: Call
  ) -> Download {
    let firstPart = expected.flatMap { $0 > options.partSize ? min($0, partUnit) : nil }
    let (question, isNew) = state.withLock { state -> (Download, Bool) in
      if let question = state.questions[object], question.enter() { return (question, false) }
      let candidate = state.candidate(for: object)
      let question = Download(
        asking: object, content: state.nextContent(), candidate: candidate, listed: listed,
        cache: self)
      _ = question.enter()
      state.questions[object] = question
      return (question, true)
    }
    if isNew { question.ask(firstPart: firstPart, timeout: call.timeout) }
    return question
  }

  /// What is kept answers, unless the failure says that there is no such object.
  private func fallBack(to object: ObjectName, from question: Download, _ error: StoreError)
    throws(StoreError) -> OpenFile
  {
    guard let file = try openUnconfirmed(object, error) else { throw error }
    file.note(doubt: error)
    return file
  }

  private func openUnconfirmed(_ object: ObjectName, _ error: StoreError) throws(StoreError)
    -> OpenFile?
  {
    if error.kind == .notFound, store.session.isCredible { throw error }
    let (download, partial) = state.withLock { ($0.downloads[object], $0.partials[object]) }
    if let download, download.isComplete, let file = open(download) { return file }
    // Twice, since a file that is not what its row says may turn out to be a newer copy.
    for _ in 0..<2 {
      if let copy = state.withLock({ $0.copies[object] }), let file = open(object, copy) {
        Log.info("\(object): served from the copy: \(error)")
        return file
      }
    }
    if let download, let file = open(download) { return file }
    return partial.flatMap { resume($0, of: object, confirmed: .epoch) }
  }

  /// Opens what the store has just called current; nil when it is gone.
  private func openCandidate(of question: Download) -> OpenFile? {
    switch question.state.withLock({ $0.candidate }) {
    case .copy(let copy):
      let current = state.withLock { $0.copies[question.object] }
      return open(question.object, current?.content == copy.content ? current ?? copy : copy)
    case .download(let download):
      if let file = open(download) { return file }
      let copy = state.withLock { $0.copies[question.object] }
      guard let copy, copy.content == download.content else { return nil }
      return open(question.object, copy)
    case .partial(let partial): return resume(partial, of: question.object, confirmed: .now)
    case nil: return nil
    }
  }

  private func open(_ download: Download) -> OpenFile? {
    download.enter() ? OpenFile(download, in: self) : nil
  }

  private func open(_ download: Download, confirmedWithin age: Span, at now: Timestamp)
    -> OpenFile?
  {
    let isConfirmed = download.state.withLock { state -> Bool in
      let passed = now.since(state.confirmed)
      return state.isSizeKnown && state.facts != nil && passed >= .zero && passed < age
    }
    return isConfirmed ? open(download) : nil
  }

  /// Goes on with a large object of which parts are kept.
  private func resume(_ partial: Partial, of object: ObjectName, confirmed: Timestamp)
    -> OpenFile?
  {
    let file: PartFile
    do throws(Errno) {
      guard let found = try PartFile.reopen(partial, in: directory) else {
        Log.warning("\(object): its parts were changed behind the program's back")
        forget(object, partial)
        return nil
      }
      file = found
    } catch {
      if error.showsThatItIsGone {
        forget(object, partial)
      } else {
        Log.warning("cannot open the parts of \(object): \(error)")
      }
      return nil
    }
    let download = state.withLock { state -> Download? in
      if let download = state.downloads[object] {
        return download.enter() ? download : nil
      }
      guard state.partials[object] == partial else { return nil }
      state.partials[object] = nil
      state.bytes &-= partial.present.count
      let download = Download(
        resuming: partial, file: file, of: object, content: state.nextContent(),
        confirmed: confirmed, cache: self)
      _ = download.enter()
      state.downloads[object] = download
      return download
    }
    return download.map { OpenFile($0, in: self) }
  }
}

extension FileCache.State {
  /// The newest that is kept of an object, whose tag the store is asked about.
  func candidate(for object: ObjectName) -> Download.Candidate? {
    if let download = downloads[object], download.canBeAskedAbout { return .download(download) }
    if let partial = partials[object] { return .partial(partial) }
    return copies[object].map { .copy($0) }
  }
}

extension Download {
  var isComplete: Bool { state.withLock { $0.isWhole } }

  /// Whether it may serve who opens the object once the store says that it is current.
  var canBeAskedAbout: Bool {
    state.withLock { !$0.isEnded && !$0.isDoubtful && $0.facts?.tag != nil }
  }
}
