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
  /// - Returns: nil for `.` and `..`, which the kernel does not count.
  package func reference(_ index: Int, of handle: DirectoryHandle) -> Entry? {
    guard index >= 2, index < handle.count else { return nil }
    let entry = handle.lines[index - 2]
    guard let place = place(of: entry.line, in: handle.folder) else { return nil }
    return reference(entry, at: place, parent: handle.inode, believed: handle.believed)
  }
}
