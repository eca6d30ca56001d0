package import BucketStore
package import Platform

extension Listings {
  /// Whether a folder has more pages than one fetches for the sake of one name.
  func isLong(_ folder: FolderName) -> Bool {
    if folder.isBuckets { return false }
    if state.withLock({ $0.long.contains(folder) }) { return true }
    guard let listing = kept(folder) else { return false }
    return listing.count > Self.pagesForOneName * store.capabilities.pageSize
  }

  /// Asks the store for one name in a folder.
  ///
  /// - Throws: `StoreError`.
  package func point(_ name: ByteString, in folder: FolderName, _ call: Call) throws(StoreError)
    -> (entry: ListingEntry?, believed: Span)
  {
    if let known = state.withLock({ $0.points.entry(name, in: folder, at: .now) }) {
      return known
    }
    guard let segment = options.names.segment(of: name) else { return (nil, options.maxAge) }
    let known = kept(folder)
    let asked = state.withLock { $0.points.count(folder) }
    // Whoever asks for so many names wants them all.
    if let known, asked > max(16, known.count / max(store.capabilities.pageSize, 1)) {
      guard case .listing(let listing) = try shared(folder, pageLimit: nil, call) else {
        throw StoreError(.server, "no listing came")
      }
      return (listing.entry(name), answer(listing).believed)
    }
    let before = known?.entry(name)
    let entry = try ask(segment, name, in: folder, before, call)
    if entry == nil, !store.session.isCredible {
      guard let before else {
        throw StoreError(.sessionExpired, "\(folder)\(name): nobody is signed in")
      }
      return (before, .zero)
    }
    state.withLock {
      $0.points.set(name, in: folder, entry, until: .now + options.maxAge)
    }
    if entry != before, known != nil { replace(name, in: folder, with: entry) }
    return (entry, options.maxAge)
  }

  private func ask(
    _ segment: ByteString, _ name: ByteString, in folder: FolderName, _ before: ListingEntry?,
    _ call: Call
  ) throws(StoreError) -> ListingEntry? {
    // A folder hides an object of its name, so it is asked for first where it is likely.
    if before?.isFolder == true, try hasFolder(segment, in: folder, call) { return before }
    if let entry = try object(segment, name, in: folder, before, call) {
      guard before?.isFolder == false else {
        return try hasFolder(segment, in: folder, call)
          ? ListingEntry(name: name, kind: .folder, modified: .now) : entry
      }
      return entry
    }
    guard before?.isFolder != true, try hasFolder(segment, in: folder, call) else { return nil }
    return ListingEntry(name: name, kind: .folder, modified: .now)
  }

  private func hasFolder(_ segment: ByteString, in folder: FolderName, _ call: Call)
    throws(StoreError) -> Bool
  {
    let page = try self.page(
      ListRequest(
        bucket: folder.bucket, prefix: folder.folder(segment).prefix, delimited: true), call)
    return !page.objects.isEmpty || !page.folders.isEmpty
  }

  private func object(
    _ segment: ByteString, _ name: ByteString, in folder: FolderName, _ before: ListingEntry?,
    _ call: Call
  ) throws(StoreError) -> ListingEntry? {
    let asked = Timestamp.now
    let info: ObjectInfo
    do throws(StoreError) {
      info = try store.info(folder.object(segment), call)
    } catch {
      if error.kind == .notFound { return nil }
      throw error
    }
    options.confirm([info], folder.bucket, asked)
    // Listings and single answers may date the same write differently; the listing's date stays.
    if let before, !before.isFolder, EntityTag.areSame(before.tag, info.tag),
      before.size == info.size
    {
      return before
    }
    return ListingEntry(
      name: name, kind: .file, size: info.size, tag: info.tag, modified: info.modified,
      contentType: info.contentType)
  }
}
