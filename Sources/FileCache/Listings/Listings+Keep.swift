package import BucketStore
package import Platform

extension Listings {
  /// Keeps listings in place of those before them.
  func keep(_ listings: [(new: Listing, before: Listing?)]) {
    let changed = listings.filter { pair in pair.before.map { !pair.new.isSame(as: $0) } ?? true }
    state.withLock { state in
      for (new, before) in listings {
        // What is the same keeps the memory that readers of the old one share.
        let same = before.map { new.isSame(as: $0) } ?? false
        let kept = same ? before?.confirmed(at: new.fetchedAt, cost: new.cost) : new
        state.memory.set(kept ?? new)
        state.points.forget(new.folder)
        state.long.remove(new.folder)
      }
      state.keptBytes += changed.reduce(0) { $0 + $1.new.byteCount }
    }
    rows?.save(changed.map(\.new))
    for (new, before) in listings {
      guard let before else { continue }
      if new.isSame(as: before) {
        rows?.touch(new.folder, fetchedAt: new.fetchedAt, cost: new.cost)
      } else {
        changedContent(before, new)
      }
    }
    evict()
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
    guard let old = kept(folder), old.entry(name) != entry else { return }
    let new = old.replacing(name, with: entry)
    let isInPlace = state.withLock { state -> Bool in
      guard let now = state.memory.listing(folder), now.fetchedAt == old.fetchedAt else {
        return false
      }
      state.memory.update(new)
      return true
    }
    // A listing that came meanwhile knows better.
    guard isInPlace else { return }
    rows?.replace(name, in: folder, with: entry)
    if !quietly { notify(old, new) }
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
    state.withLock { $0.memory.removeTree(folder) }
    rows?.removeTree(folder)
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

  package func hide(_ folder: FolderName) {
    state.withLock { state in
      let count = (state.shown[folder] ?? 0) - 1
      state.shown[folder] = count > 0 ? count : nil
    }
  }

  /// Past the bound, the listings that were fetched longest ago go, ten at a time, until 50 MB
  /// below it, or to the bound itself where it is no more than that.
  private func evict() {
    guard let rows, let limit = options.limit, state.withLock({ $0.keptBytes }) > limit else {
      return
    }
    var total = rows.totalBytes
    if total > limit {
      let goal = Self.goal(below: limit)
      let shown = state.withLock { Set($0.shown.keys.prefix(Self.sparedListings)) }
      while total > goal {
        let (folders, bytes) = rows.removeOldest(10, sparing: shown)
        if folders.isEmpty { break }
        state.withLock { state in
          for folder in folders { state.memory.remove(folder) }
        }
        total -= bytes
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
