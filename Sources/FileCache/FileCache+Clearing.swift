import BucketStore
import Platform
import SQLite

extension FileCache {
  /// Removes every copy and every part of one, and gives the room back. Waits for the disk.
  ///
  /// Who has a file open reads on; its room comes back when it is closed. Downloads under way serve
  /// their readers and become no copies. Listings are not the cache's to remove.
  /// - Throws: `CacheError` when the index cannot be rewritten; the copies are gone all the same.
  package func clear() throws(CacheError) {
    let objects = state.withLock { state in
      Set(state.copies.keys).union(state.partials.keys).union(state.downloads.keys)
    }
    for object in objects { drop(object) }
    do throws(DatabaseError) {
      try database.compact()
    } catch {
      throw .index(path: directory.path + "/" + IndexOpener.name, message: error.description)
    }
  }
}
