package import BucketStore
package import Platform
package import SQLite

/// The listings of folders: asked of the store, kept in memory and in the index, and answered from
/// there while they are fresh or when the store cannot be asked.
///
/// Every call is safe from any thread. The state's lock is held for look-ups in memory alone.
package final class Listings: Sendable {
  /// As they were given at the start.
  package let options: ListingOptions
  let store: any BucketStore
  let rows: ListingRows?
  let state: Locked<State>
  private let observer = Locked<(@Sendable (Listing, Listing) -> Void)?>(nil)

  struct State {
    var memory: ListingMemory
    var fetches: [FolderName: ListingFetch] = [:]
    var walks: [FolderName: FlatWalk] = [:]
    var watch = WalkWatch()
    var points = PointAnswers()
    /// Folders that were found too long to be listed for the sake of one name.
    var long: Set<FolderName> = []
    /// Folders whose rows are not what memory has.
    var unsaved: Set<FolderName> = []
    /// How many open folders show a listing.
    var shown: [FolderName: Int] = [:]
    /// What was fetched before is not believed without asking.
    var trustedSince = Timestamp.epoch
    /// Bytes in the index, as far as is known without counting.
    var keptBytes: Int64 = 0
  }

  /// A listing, and how long it may be believed without asking.
  package struct Answer: Sendable {
    /// What the folder holds.
    package let listing: Listing
    /// From now on; zero where the next question must ask the store.
    package let believed: Span

    /// Nothing, and not to be believed.
    package static func empty(_ folder: FolderName) -> Answer {
      let builder = ListingBuilder(folder, names: .verbatim)
      let listing = builder.finish(fetchedAt: .epoch, cost: .zero, after: nil)
      return Answer(listing: listing, believed: .zero)
    }
  }

  /// - Parameter database: where listings are kept; nil keeps them in memory alone.
  package init(store: any BucketStore, database: Database?, options: ListingOptions) {
    self.store = store
    self.options = options
    let rows = database.map { ListingRows(database: $0, names: options.names) }
    self.rows = rows
    state = Locked(State(memory: ListingMemory(limit: options.memoryLimit)))
    rows?.removeUnfinished()
    let bytes = rows?.totalBytes ?? 0
    state.withLock { $0.keptBytes = bytes }
  }

  /// Names who is told when a listing in memory gives way to a different one, as (old, new).
  ///
  /// Called on the thread that asked the store, under no lock.
  package func observe(_ body: @escaping @Sendable (Listing, Listing) -> Void) {
    observer.withLock { $0 = body }
  }

  /// The listing that needs no asking; nil when the store must be asked. Memory, and a quick read
  /// of the index where memory has nothing.
  package func fresh(_ folder: FolderName) -> Answer? {
    fresh(folder, upTo: Self.quickBytes)
  }

  /// - Parameter limit: bytes of a listing that is read from the index.
  private func fresh(_ folder: FolderName, upTo limit: Int64) -> Answer? {
    let now = Instant.now
    let (listing, standIn, trustedSince) = state.withLock { state in
      (state.memory.listing(folder), state.memory.standIn(folder, at: now), state.trustedSince)
    }
    if let listing {
      let isTrusted = listing.fetchedAt >= trustedSince
      let believed = max(isTrusted ? listing.freshness(options.maxAge) : .zero, standIn)
      return believed > .zero ? Answer(listing: listing, believed: believed) : nil
    }
    guard let facts = rows?.facts(folder), !facts.isPartial, facts.bytes < limit,
      facts.fetchedAt >= trustedSince,
      Listing.freshness(options.maxAge, fetchedAt: facts.fetchedAt, cost: facts.cost) > .zero,
      let listing = kept(folder)
    else { return nil }
    return answer(listing)
  }

  /// What memory has of a folder, however old.
  package func remembered(_ folder: FolderName) -> Listing? {
    state.withLock { $0.memory.listing(folder) }
  }

  /// The listing of a folder that is to be read through, as far as that needs no asking.
  package func opened(_ folder: FolderName) -> Answer? {
    guard let answer = fresh(folder) else { return nil }
    state.withLock { _ = $0.watch.opening(folder, at: .now) }
    return answer
  }

  /// Bytes of a listing that is read from the index without much delay.
  private static let quickBytes: Int64 = 512 << 10

  /// What is kept of a folder, however old; never asks the store.
  package func kept(_ folder: FolderName) -> Listing? {
    if let listing = state.withLock({ $0.memory.listing(folder) }) { return listing }
    guard let loaded = rows?.load(folder) else { return nil }
    return state.withLock { state in
      // A newer one may have come meanwhile.
      if let listing = state.memory.listing(folder) { return listing }
      state.memory.set(loaded)
      return loaded
    }
  }

  /// The listing of a folder that is to be read through: the fresh one, else the store's.
  ///
  /// - Throws: `StoreError`; `notFound` when the folder is believed not to exist.
  package func asked(_ folder: FolderName, _ call: Call) throws(StoreError) -> Answer {
    let root = state.withLock { $0.watch.opening(folder, at: .now) }
    defer { state.withLock { $0.watch.served(folder, at: .now) } }
    if let answer = fresh(folder, upTo: .max) { return answer }
    if let root, store.capabilities.flatListing, store.session.isCredible,
      let listing = try walk(root, to: folder, call)
    {
      return answer(listing)
    }
    switch try shared(folder, pageLimit: nil, call) {
    case .listing(let listing): return answer(listing)
    case .tooLong, .failure: throw StoreError(.server, "no listing came")
    }
  }

  /// Lets a listing confirm the copies of a folder's objects: one no older than `maxAge`.
  ///
  /// A long folder is left alone.
  /// - Throws: `StoreError`.
  package func confirm(_ folder: FolderName, _ call: Call) throws(StoreError) {
    if isLong(folder) { return }
    if let listing = kept(folder), listing.freshness(options.maxAge, cost: .zero) > .zero {
      return
    }
    if case .tooLong = try shared(folder, pageLimit: Self.pagesForOneName, call) {
      state.withLock { _ = $0.long.insert(folder) }
    }
  }

  /// What a name in a folder leads to; nil for nothing. A folder that is short is listed, which
  /// answers for all its names; a long one is asked for the name alone.
  ///
  /// - Throws: `StoreError`, as `asked` of the folder.
  package func asked(_ name: ByteString, in folder: FolderName, _ call: Call) throws(StoreError)
    -> (entry: ListingEntry?, believed: Span)
  {
    if let answer = fresh(folder, upTo: .max), answer.listing.tells(of: name) {
      return try find(name, in: answer, call)
    }
    if !isLong(folder) {
      let outcome = try shared(folder, pageLimit: Self.pagesForOneName, call)
      if case .listing(let listing) = outcome { return try find(name, in: answer(listing), call) }
      state.withLock { _ = $0.long.insert(folder) }
    }
    return try point(name, in: folder, call)
  }

  /// How many pages are fetched for the sake of one name.
  static let pagesForOneName = 4

  private func find(_ name: ByteString, in answer: Answer, _ call: Call) throws(StoreError) -> (
    entry: ListingEntry?, believed: Span
  ) {
    if let entry = answer.listing.entry(name) { return (entry, answer.believed) }
    guard answer.listing.folder.isBuckets else { return (nil, answer.believed) }
    return try probe(name, answer.listing, call)
  }

  func answer(_ listing: Listing) -> Answer {
    Answer(listing: listing, believed: listing.freshness(options.maxAge))
  }

  /// What is kept, in place of an answer that the store could not give.
  ///
  /// - Throws: the failure, when nothing is kept, or when what is kept has no say against it.
  package func standIn(_ folder: FolderName, for error: StoreError) throws(StoreError) -> Answer {
    guard error.kind != .cancelled, error.kind != .notFound, let answer = standIn(folder) else {
      throw error
    }
    Log.debug("\(folder) is shown as it was: \(error)")
    return answer
  }

  /// What is kept of a folder, as an answer that is believed for a moment; nil when nothing is.
  package func standIn(_ folder: FolderName) -> Answer? {
    guard let listing = kept(folder) else { return nil }
    let believed = min(options.maxAge, Self.standInTime)
    state.withLock { $0.memory.setStandIn(folder, until: .now + believed) }
    return Answer(listing: listing, believed: max(believed, listing.freshness(options.maxAge)))
  }

  /// Whether anything is kept of a folder; cheaper than having it.
  package func isKept(_ folder: FolderName) -> Bool {
    state.withLock { $0.memory.listing(folder) } != nil || rows?.facts(folder) != nil
  }

  /// How long a kept listing is shown without asking again, after the store could not be asked.
  private static let standInTime = Span.seconds(1)

  /// The outcome of a fetch that all who want it share.
  func shared(_ folder: FolderName, pageLimit: Int?, _ call: Call) throws(StoreError)
    -> ListingFetch.Outcome
  {
    while true {
      let mine = ListingFetch()
      let running = state.withLock { state -> ListingFetch? in
        if let running = state.fetches[folder] { return running }
        state.fetches[folder] = mine
        return nil
      }
      guard let running else {
        let outcome: ListingFetch.Outcome
        do throws(StoreError) {
          outcome = try fetch(folder, pageLimit: pageLimit, call)
        } catch {
          outcome = .failure(error)
        }
        state.withLock { $0.fetches[folder] = nil }
        mine.finish(outcome)
        if case .failure(let error) = outcome { throw error }
        return outcome
      }
      switch running.wait(call.cancellation) {
      case .listing(let listing): return .listing(listing)
      case .tooLong: if pageLimit != nil { return .tooLong }
      case .failure(let error): if error.kind != .cancelled { throw error }
      case nil: throw StoreError(.cancelled, "\(folder): interrupted")
      }
    }
  }

  func notify(_ old: Listing, _ new: Listing) {
    observer.withLock { $0 }?(old, new)
  }
}
