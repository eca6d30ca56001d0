import BucketStore
import FileCache
package import Platform

extension FileSystem {
  /// What a name in a folder leads to (FUSE_LOOKUP). A name that is found counts as one answer,
  /// which `forget` takes back.
  ///
  /// - Throws: `Failure`; ENAMETOOLONG, ENOTDIR, or the store's failure when nothing kept answers.
  package func lookup(_ name: ByteString, in parent: UInt64, _ caller: Caller) throws(Failure)
    -> Lookup
  {
    let folder = try folder(parent)
    guard name.count <= KeyNames.longestName else {
      throw Failure(.nameTooLong, "\(folder)\(name): name is too long")
    }
    guard KeyNames.isName(name) else { return .missing(timeout: listings.options.maxAge) }
    let (entry, believed) = try find(name, in: folder, caller)
    guard let entry, let place = place(of: entry.line, in: folder) else {
      missing.withLock { $0.add(name, in: parent, believed: believed) }
      return .missing(timeout: believed)
    }
    return .found(reference(entry, at: place, parent: parent, believed: believed))
  }

  /// The attributes of an inode (FUSE_GETATTR).
  ///
  /// An inode that is open tells of the version that is open; its name may lead to another inode.
  /// - Throws: `Failure`; ENOENT when its name is gone.
  package func attributes(of inode: UInt64, _ caller: Caller) throws(Failure) -> Entry {
    let node = try node(inode)
    if inode == NodeTable.root { return rootEntry }
    if node.isDetached, let open = attributes(ofOpen: node, inode) { return open }
    let folder = try folder(containing: node)
    let (found, believed) = try find(node.name, in: folder, caller)
    guard let found, place(of: found.line, in: folder) == node.place else {
      if node.opens > 0, let open = attributes(ofOpen: node, inode) { return open }
      throw Failure(.noEntry, "\(node.place): no longer there")
    }
    guard let facts = found.facts else {
      return Entry(
        attributes: attributes(of: found, at: node.place, inode: inode), entryTimeout: believed,
        attributesTimeout: believed)
    }
    let told = tree.withLock { $0.tell(inode, facts) }
    guard told == facts else { return entry(inode, told, believed) }
    return Entry(
      attributes: attributes(of: found, at: node.place, inode: inode), entryTimeout: believed,
      attributesTimeout: found.line.size == nil ? .zero : believed)
  }

  /// The attributes of a file whose name leads elsewhere, or nowhere: of what is open of it.
  private func attributes(ofOpen node: Node, _ inode: UInt64) -> Entry? {
    let facts = node.body?.file.map { FileFacts(pendingSize: $0.size, $0.modified) } ?? node.told
    guard let facts else { return nil }
    var entry = entry(inode, facts, .zero)
    if node.isUnlinked { entry.attributes.links = 0 }
    return entry
  }

  /// What the store has under a name, with its size known if it can be.
  func findStored(_ name: ByteString, in folder: FolderName, _ caller: Caller) throws(Failure) -> (
    entry: ListingEntry?, believed: Span
  ) {
    if let answer = listings.fresh(folder), answer.listing.tells(of: name) {
      let entry = answer.listing.entry(name)
      let isAnswer = entry.map { $0.isFolder || $0.size != nil } ?? !folder.isBuckets
      if isAnswer { return (entry, answer.believed) }
    }
    guard caller.lane > .fast else { throw .takesTime }
    do throws(StoreError) {
      if let found = try ask(name, in: folder, caller) {
        guard let entry = found.entry, !entry.isFolder, entry.size == nil else { return found }
        if let found = try measure(entry, in: folder, found.believed, caller) { return found }
      }
    } catch {
      // A store that is believed to have no such thing is not gainsaid by a copy of it.
      if error.kind != .cancelled, error.kind != .notFound,
        let entry = entryOfCopy(name, in: folder)
      {
        return (entry, .zero)
      }
      throw Failure(error, "\(folder)\(name)")
    }
    throw .mustWait
  }

  /// What the store says of a name; what is kept, when it says nothing for too long.
  ///
  /// - Returns: nil when only the store can answer, and may not be waited for here.
  private func ask(_ name: ByteString, in folder: FolderName, _ caller: Caller) throws(StoreError)
    -> (entry: ListingEntry?, believed: Span)?
  {
    if isKnown(folder) {
      if let found = try askOrRemember(name, in: folder, caller.call) { return found }
    } else if let copy = entryOfCopy(name, in: folder) {
      let found = try patience.ask(.names, caller.call) { [listings] (call) throws(StoreError) in
        try listings.asked(name, in: folder, call)
      }
      return found ?? (copy, .zero)
    }
    guard caller.lane == .slow else { return nil }
    return try patience.insist(.names, about: .folder(folder), caller.call) {
      (call) throws(StoreError) in
      try listings.asked(name, in: folder, call)
    }
  }

  /// What the store says of a name, or else what is kept of its folder; nil when nothing is.
  private func askOrRemember(_ name: ByteString, in folder: FolderName, _ call: Call)
    throws(StoreError) -> (entry: ListingEntry?, believed: Span)?
  {
    var answer: Listings.Answer?
    do throws(StoreError) {
      let found = try patience.ask(.names, call) { [listings] (call) throws(StoreError) in
        try listings.asked(name, in: folder, call)
      }
      if let found { return found }
      answer = listings.standIn(folder)
      if answer == nil { answer = try unanswered(folder) }
    } catch {
      answer = try listings.standIn(folder, for: error)
      if answer?.listing.tells(of: name) == false { throw error }
    }
    guard answer?.listing.tells(of: name) ?? true else { return nil }
    return answer.map { ($0.listing.entry(name), $0.believed) }
  }

  /// Asks for a size that the listing does not tell.
  ///
  /// - Returns: nil when only the store can answer, and may not be waited for here.
  private func measure(
    _ entry: ListingEntry, in folder: FolderName, _ believed: Span, _ caller: Caller
  ) throws(StoreError) -> (entry: ListingEntry?, believed: Span)? {
    let copy = entryOfCopy(entry.name, in: folder)
    do throws(StoreError) {
      if let copy {
        let found = try patience.ask(.names, caller.call) { [listings] (call) throws(StoreError) in
          try listings.point(entry.name, in: folder, call)
        }
        return found ?? (copy, .zero)
      }
      guard caller.lane == .slow else { return nil }
      return try patience.insist(.names, about: .folder(folder), caller.call) {
        (call) throws(StoreError) in
        try listings.point(entry.name, in: folder, call)
      }
    } catch {
      if error.kind == .cancelled { throw error }
      Log.debug("\(folder)\(entry.name): size is not known: \(error)")
      return (copy ?? entry, .zero)
    }
  }

  /// Counts one more answer that names an entry, and makes the answer.
  func reference(
    _ entry: TreeEntry, at place: Place, parent: UInt64, believed: Span
  ) -> Entry {
    let facts = entry.facts
    let inode = tree.withLock {
      $0.reference(place, parent: parent, name: entry.name, facts: facts)
    }
    // Without a size the kernel must come back before it shows one.
    let isMeasured = entry.isFolder || entry.line.size != nil
    return Entry(
      attributes: attributes(of: entry, at: place, inode: inode), entryTimeout: believed,
      attributesTimeout: isMeasured ? believed : .zero)
  }

  /// The folder in whose listing a node's own line is.
  func folder(containing node: Node) throws(Failure) -> FolderName {
    switch node.place {
    case .object(let object): return FolderName(containing: object)
    case .folder(let folder):
      guard let parent = folder.parent else {
        throw Failure(.invalid, "the list of buckets has no parent")
      }
      return parent
    }
  }

  /// What an entry of a folder stands for; nil when the store can hold no such name.
  func place(of entry: ListingEntry, in folder: FolderName) -> Place? {
    guard let segment = listings.options.names.segment(of: entry.name) else { return nil }
    return entry.isFolder ? .folder(folder.folder(segment)) : .object(folder.object(segment))
  }
}
