package import Platform

/// What this device itself has changed at the store.
extension Listings {
  /// Notes in the index, and for questions about the name alone, what a change has made of a name.
  ///
  /// What is in memory of the folder stays as it is, so that many changes of a long folder cost
  /// little: whoever shows it puts them in, until `learn`.
  /// - Parameter entry: nil for a name that is gone.
  package func note(_ name: ByteString, in folder: FolderName, _ entry: ListingEntry?) {
    let ticket = state.withLock { state in
      state.points.set(name, in: folder, entry, until: .now + options.maxAge)
      state.unsaved.insert(folder)
      return rows?.queue([.replace(name, in: folder, entry)])
    }
    ticket?.wait()
  }

  /// Puts changes that were noted before into what memory has of the folder, all at once.
  ///
  /// - Parameter changes: by name, each with the moment of it; nil for a name that is gone.
  package func learn(
    _ changes: [ByteString: (entry: ListingEntry?, at: Timestamp)], in folder: FolderName
  ) {
    while true {
      let (found, revision) = state.withLock { state in
        (state.memory.listing(folder), state.memory.revision(folder))
      }
      guard let old = found else { return }
      // A listing that was asked for later knows better.
      let news = changes.filter { $0.value.at >= old.fetchedAt }.mapValues(\.entry)
      if news.isEmpty { return }
      let new = old.replacing(news)
      let isInPlace = state.withLock { state -> Bool in
        guard state.memory.revision(folder) == revision else { return false }
        state.memory.update(new)
        return true
      }
      if isInPlace { return }
    }
  }

  /// Keeps an empty listing of a folder that is known not to be at the store, in place of any other.
  ///
  /// It answers like any other, as fresh as if the store had just given it, and later changes are
  /// noted in it.
  @discardableResult
  package func plant(_ folder: FolderName) -> Answer {
    let builder = ListingBuilder(folder, names: options.names)
    let listing = builder.finish(fetchedAt: .now, cost: .zero, after: nil)
    keep([(listing, nil)])
    return answer(listing)
  }
}
