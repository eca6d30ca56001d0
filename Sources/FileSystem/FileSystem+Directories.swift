import BucketStore
import FileCache
import Platform

extension FileSystem {
  /// Opens a folder (FUSE_OPENDIR): asks the store unless its listing is fresh.
  ///
  /// - Throws: `Failure`; ENOTDIR, ENOENT, or the store's failure when no listing is kept.
  package func openDirectory(_ inode: UInt64, _ caller: Caller) throws(Failure) -> DirectoryHandle {
    let node = try node(inode)
    let folder = try folder(inode)
    let answer = try answer(for: folder, caller)
    listings.show(folder)
    return DirectoryHandle(
      inode: inode, folder: folder, believed: answer.believed,
      lines: MergedListing(answer.listing, changes: changes(of: answer.listing)),
      own: attributes(ofFolder: inode), parent: attributes(ofFolder: node.parent),
      attributes: { [self] entry in
        let place = place(of: entry.line, in: folder)
        let inode = place.map { place in tree.withLock { $0.inode(of: place) } }
        return attributes(of: entry, at: place, inode: inode ?? 0)
      },
      onClose: { [listings] in listings.hide(folder) })
  }

  /// What the store has in a folder; nothing, for one that is pending as a whole.
  func answer(for folder: FolderName, _ caller: Caller) throws(Failure) -> Listings.Answer {
    do throws(Failure) {
      return try storedAnswer(for: folder, caller)
    } catch {
      if let answer = pendingAnswer(for: folder, error) { return answer }
      guard wasJustStored(folder, error) else { throw error }
      return Listings.Answer.empty(folder)
    }
  }

  private func storedAnswer(for folder: FolderName, _ caller: Caller) throws(Failure)
    -> Listings.Answer
  {
    if caller.lane == .fast {
      guard let answer = listings.opened(folder) else { throw .takesTime }
      return answer
    }
    do throws(StoreError) {
      if isKnown(folder), let answer = try askOrRemember(folder, caller.call) {
        return answer
      }
      if caller.lane == .slow {
        return try patience.insist(.names, about: .folder(folder), caller.call) {
          (call) throws(StoreError) in
          try listings.asked(folder, call)
        }
      }
    } catch {
      throw Failure(error, folder.description)
    }
    throw .mustWait
  }

  /// What the store says of a folder, or else what is kept of it; nil when nothing is.
  private func askOrRemember(_ folder: FolderName, _ call: Call) throws(StoreError)
    -> Listings.Answer?
  {
    do throws(StoreError) {
      let answer = try patience.ask(.names, call) { [listings] (call) throws(StoreError) in
        try listings.asked(folder, call)
      }
      if let answer = answer ?? listings.standIn(folder) { return answer }
      return try unanswered(folder)
    } catch {
      return try listings.standIn(folder, for: error)
    }
  }

  /// Counts one more answer that names an entry of an open folder, as readdirplus gives it.
  ///
  /// The kernel believes the answer as it does a lookup's, so it is of what is there now, not of what
  /// was there when the folder was opened: else a name that was removed meanwhile would come back,
  /// and a file that was written would be as short as it was before. Memory only.
  ///
  /// - Returns: nil for `.` and `..`, which the kernel does not count, and for a name that has to be
  ///   looked up anew.
  package func reference(_ index: Int, of handle: DirectoryHandle) -> Entry? {
    guard index >= 2, index < handle.count, let entry = current(index - 2, of: handle),
      let place = place(of: entry.line, in: handle.folder)
    else { return nil }
    return reference(entry, at: place, parent: handle.inode, believed: handle.believed)
  }

  /// What a line of an open folder is now, as far as memory knows; nil where that is nothing, or
  /// something of another kind. Looks in the order in which `find` does.
  private func current(_ index: Int, of handle: DirectoryHandle) -> TreeEntry? {
    let folder = handle.folder
    let opened = handle.lines[index]
    let name = opened.name
    func ofItsKind(_ entry: TreeEntry?) -> TreeEntry? {
      entry.flatMap { $0.isFolder == opened.isFolder ? $0 : nil }
    }
    guard let queue else { return ofItsKind(listed(index, of: handle)) }
    if !queue.isEmpty, !folder.isBuckets {
      guard let segment = listings.options.names.segment(of: name) else { return nil }
      let object = folder.object(segment)
      if let pending = queue.entry(for: object) {
        return ofItsKind(TreeEntry(pending, name: name))
      }
      let inner = folder.folder(segment)
      if queue.hasEntries(below: inner.prefix, in: inner.bucket) {
        return opened.isFolder ? opened : nil
      }
      if queue.isDeleted(object) || isGoing(inner, name, in: folder, queue) { return nil }
    }
    let asked = handle.lines.listing.fetchedAt
    if let change = recent.withLock({ $0.change(name, in: folder, since: asked) }) {
      return ofItsKind(change.entry.map { TreeEntry($0) })
    }
    return ofItsKind(listed(index, of: handle))
  }

  /// What the listing in memory has under the name of a line; the line itself where that has not
  /// changed.
  private func listed(_ index: Int, of handle: DirectoryHandle) -> TreeEntry? {
    let opened = handle.lines[index]
    let isOfListing = handle.lines.isOfListing(index)
    guard let now = listings.remembered(handle.folder) else { return isOfListing ? opened : nil }
    if isOfListing, now.hasTheEntries(of: handle.lines.listing) { return opened }
    if let line = now.entry(opened.name) { return TreeEntry(line) }
    return isOfListing && !now.tells(of: opened.name) ? opened : nil
  }
}
