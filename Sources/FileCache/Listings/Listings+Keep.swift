package import BucketStore
package import Platform

extension Listings {
  /// Keeps listings in place of those before them.
  ///
  /// - Parameter listings: each with the one that was kept when the store was asked.
  func keep(_ listings: [(new: Listing, before: Listing?)]) {
    let parts = listings.map { draft($0.new, after: $0.before) }
    let (replaced, ticket) = state.withLock { state in
      var replaced: [(old: Listing, new: Listing)] = []
      var changes: [ListingRows.Change] = []
      for part in parts {
        let (new, folder) = (part.new, part.new.folder)
        let isUntouched =
          state.memory.revision(folder) == part.revision && !state.unsaved.contains(folder)
        let old = isUntouched ? part.old : state.memory.listing(folder) ?? part.old
        state.points.forget(folder)
        state.long.remove(folder)
        if let old, part.isSame, isUntouched {
          // Keeps the memory that readers of the old one share.
          let confirmed = old.confirmed(at: new.fetchedAt, cost: new.cost)
          state.memory.set(confirmed)
          changes.append(.confirm(confirmed))
          continue
        }
        state.memory.set(new)
        state.unsaved.remove(folder)
        state.keptBytes += new.byteCount
        changes.append(.save(new, draft: part.rows))
        if let old { replaced.append((old, new)) }
      }
      return (replaced, rows?.queue(changes))
    }
    if let ticket, !ticket.wait() {
      state.withLock { state in
        for part in parts { state.unsaved.insert(part.new.folder) }
      }
      for draft in parts.compactMap(\.rows) { rows?.discard(draft: draft) }
    }
    for (old, new) in replaced where !new.isSame(as: old) { changedContent(old, new) }
    evict()
  }

  /// A listing that is about to be kept, compared with what there is, and written if that takes long.
  private struct Draft {
    let new: Listing
    let old: Listing?
    /// The revision in memory of the old one.
    let revision: UInt64?
    let isSame: Bool
    /// The number of its rows, where they were written ahead.
    let rows: Int64?
  }

  private func draft(_ new: Listing, after before: Listing?) -> Draft {
    let (old, revision) = state.withLock { state in
      (state.memory.listing(new.folder) ?? before, state.memory.revision(new.folder))
    }
    let isSame = old.map { new.isSame(as: $0) } ?? false
    return Draft(
      new: new, old: old, revision: revision, isSame: isSame,
      rows: isSame ? nil : rows?.draft(new))
  }

  private func changedContent(_ old: Listing, _ new: Listing) {
    for name in old.changes(to: new).changed {
      guard old.entry(name)?.isFolder == true, new.entry(name)?.isFolder != true,
        let segment = options.names.segment(of: name)
      else { continue }
      removeTree(new.folder.folder(segment))
    }
    setTime(of: new.folder, new.fetchedAt)
    notify(old, new)
  }

  /// Notes in the listing above that something in a folder changed.
  private func setTime(of folder: FolderName, _ time: Timestamp) {
    guard let parent = folder.parent, let name = name(of: folder), let listing = kept(parent),
      var entry = listing.entry(name), entry.isFolder
    else { return }
    entry.modified = time
    replace(name, in: parent, with: entry, quietly: true)
  }

  private func name(of folder: FolderName) -> ByteString? {
    options.names.name(of: folder.segment)
  }

  /// Puts an entry in place of what a kept listing has under a name, since the store has just said
  /// so of this one object.
  ///
  /// - Parameter entry: nil takes the name out.
  package func replace(_ name: ByteString, in folder: FolderName, with entry: ListingEntry?) {
    replace(name, in: folder, with: entry, quietly: false)
  }

  private func replace(
    _ name: ByteString, in folder: FolderName, with entry: ListingEntry?, quietly: Bool
  ) {
    var asked: Timestamp?
    while true {
      let revision = state.withLock { $0.memory.revision(folder) }
      guard let old = kept(folder), old.entry(name) != entry else { return }
      // A listing that came meanwhile knows better.
      if let asked, asked != old.fetchedAt { return }
      asked = old.fetchedAt
      let new = old.replacing(name, with: entry)
      let (isInPlace, ticket) = state.withLock { state -> (Bool, ListingRows.Ticket?) in
        // Another entry was replaced meanwhile, or it was read from the index just now.
        guard let revision, state.memory.revision(folder) == revision else { return (false, nil) }
        state.memory.update(new)
        return (true, rows?.queue([.replace(name, in: folder, entry)]))
      }
      guard isInPlace else { continue }
      ticket?.wait()
      if !quietly { notify(old, new) }
      return
    }
  }

  /// Forgets a folder that is gone, with all beneath, and its line in the listing above.
  func forget(_ folder: FolderName) {
    removeTree(folder)
    if let parent = folder.parent, let name = name(of: folder),
      kept(parent)?.entry(name)?.isFolder == true
    {
      replace(name, in: parent, with: nil)
    }
  }

  private func removeTree(_ folder: FolderName) {
    let ticket = state.withLock { state in
      state.memory.removeTree(folder)
      state.unsaved = state.unsaved.filter { !folder.contains($0) }
      return rows?.queue([.removeTree(folder)])
    }
    ticket?.wait()
  }

  /// Forgets every listing (another user signed in, or the person cleared the cache).
  package func clear() {
    state.withLock { state in
      state.points = PointAnswers()
      state.walks = [:]
      state.keptBytes = 0
    }
    removeTree(.buckets)
  }

  /// Believes nothing that is kept any longer, however fresh, so that the store is asked: the network is
  /// back, or the person wants to see what is new.
  package func distrust() {
    state.withLock { state in
      state.points = PointAnswers()
      state.memory.endStandIns()
      state.trustedSince = .now
    }
  }

  /// An open folder shows its listing: it is kept until `hide`.
  package func show(_ folder: FolderName) {
    state.withLock { $0.shown[folder, default: 0] += 1 }
  }

  /// An open folder no longer shows its listing; one call for each `show`.
  package func hide(_ folder: FolderName) {
    state.withLock { state in
      let count = (state.shown[folder] ?? 0) - 1
      state.shown[folder] = count > 0 ? count : nil
    }
  }

  /// Past the bound, the listings that were fetched longest ago go, those above others last, ten at
  /// a time, until 50 MB below it, or to the bound itself where it is no more than that.
  private func evict() {
    guard let rows, let limit = options.limit, state.withLock({ $0.keptBytes }) > limit else {
      return
    }
    var total = rows.totalBytes
    if total > limit {
      let goal = Self.goal(below: limit)
      let shown = state.withLock { Set($0.shown.keys.prefix(Self.sparedListings)) }
      var place: ListingRows.Place?
      var isVain = true
      while total > goal {
        let (folders, bytes, next) = rows.removeOldest(10, sparing: shown, from: place)
        state.withLock { state in
          for folder in folders { state.memory.remove(folder) }
        }
        total -= bytes
        place = next
        if !folders.isEmpty { isVain = false }
        guard next == nil else { continue }
        // Once round: what lay above others may go now.
        if isVain { break }
        isVain = true
      }
    }
    let known = total
    state.withLock { $0.keptBytes = known }
  }

  /// How many bytes may stay once the bound was passed.
  static func goal(below limit: Int64) -> Int64 {
    limit > evictionMargin ? limit - evictionMargin : limit
  }

  private static let evictionMargin: Int64 = 50_000_000
  private static let sparedListings = 500

  /// Bytes of all kept listings, as they are counted against the bound.
  package var keptBytes: Int64 { rows?.totalBytes ?? 0 }

  /// How many listings are kept. Reads the index.
  package var keptCount: Int { rows?.count ?? 0 }

  /// How many keys of the kept listings cannot be shown as paths.
  package var hiddenKeyCount: Int { rows?.hiddenCount ?? 0 }

  /// The keys of the kept listings that cannot be shown as paths, in order. A key that ends in `/`
  /// stands for all that begin with it, where the store did not name them.
  package func hiddenKeys(limit: Int) -> [ObjectName] { rows?.hiddenKeys(limit: limit) ?? [] }
}
