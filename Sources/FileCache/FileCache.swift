package import BucketStore
import Glibc
import Platform
package import SQLite

/// What is kept of the store on this device: copies of objects, and listings.
///
/// The store is asked first, always; what is kept answers when the store confirms it, when it has
/// done so just now, or when it cannot be reached. Everything here can be thrown away and fetched
/// again. The cache knows nothing of the kernel.
///
/// Guarded by its lock, which comes before that of a single download. Files are put in place and
/// removed on the database's writing thread alone, so that file and row have one order.
package final class FileCache: Sendable {
  /// As the cache was opened with.
  package let options: CacheOptions
  /// The index. Listings are kept in it too.
  package let database: Database
  let store: any BucketStore
  let directory: CacheDirectory
  let pool = WorkerPool(name: "fetch", limit: 64)
  let state: Locked<State>
  let keeper: Keeper
  let opener: IndexOpener
  /// The last sign of life of any download, for those that wait for a thread. A leaf.
  let lastSign = Locked(Instant(nanoseconds: 0))

  struct State {
    var copies: [ObjectName: Copy] = [:]
    var partials: [ObjectName: Partial] = [:]
    /// Downloads of the newest version known.
    var downloads: [ObjectName: Download] = [:]
    /// Questions that the store has not answered.
    var questions: [ObjectName: Download] = [:]
    /// How many open files each copy has.
    var opens: [ObjectName: Int] = [:]
    /// Copies whose row lags behind.
    var touched: Set<ObjectName> = []
    /// Copies whose bytes may not be on the disk yet.
    var fresh: Set<ObjectName> = []
    /// When it was last tried to have the index in a file again.
    var indexed = Instant(nanoseconds: 0)
    /// How long it rests then.
    var indexPause = FileCache.indexPauses.lowerBound
    /// When the disk was last synced.
    var synced = Instant.now
    /// Why the last file that was to be kept was not.
    var refusal: Errno?
    /// Bytes of all copies and partials.
    var bytes: Int64 = 0
    var lastContent: UInt64 = 0

    mutating func nextContent() -> UInt64 {
      lastContent += 1
      return lastContent
    }
  }

  /// Opens the cache, and makes it where it is missing.
  ///
  /// - Throws: `CacheError`, among others when another program uses it or a newer one wrote it.
  package init(options: CacheOptions, store: any BucketStore) throws(CacheError) {
    let directory = try CacheDirectory(
      options.directory, mountPoint: options.mountPoint, identity: options.identity)
    let opener = IndexOpener(directory: directory, identity: options.identity)
    let opened = try opener.open()
    self.opener = opener
    var state = State()
    state.copies = opened.copies
    state.partials = opened.partials
    state.fresh = Set(opened.copies.filter { !$0.value.isDurable }.keys)
    state.lastContent = UInt64(opened.copies.count)
    state.bytes =
      opened.copies.values.reduce(0) { $0 &+ $1.facts.size }
      &+ opened.partials.values.reduce(0) { $0 &+ $1.present.count }
    let kept = Set(state.partials.values.map(\.path))
    if directory.refusal == nil { directory.removeLeftovers(except: kept) }
    let needsSweep = opened.needsSweep
    let locked = Locked(state)
    self.state = locked
    do throws(Errno) {
      database = try Database(
        directory.path + "/" + IndexOpener.name, opened.connection,
        remake: { () throws(DatabaseError) in
          let (copies, partials) = locked.withLock { ($0.copies, $0.partials) }
          return try opener.make(copies, partials)
        })
    } catch {
      throw .system(path: directory.path, doing: "start a thread for", error)
    }
    var options = options
    options.partSize = min(max(options.partSize, 1), 1 << 40)
    self.options = options
    self.store = store
    self.directory = directory
    keeper = Keeper()
    do throws(Errno) {
      try keeper.start(self, needsSweep: needsSweep)
    } catch {
      database.close()
      directory.unlock()
      throw .system(path: directory.path, doing: "start a thread for", error)
    }
  }

  /// Ends downloads, writes what is not written, and lets another program have the cache.
  ///
  /// Whoever waits for bytes is told that they do not come.
  package func close() {
    let downloads = state.withLock { Array($0.downloads.values) + Array($0.questions.values) }
    for download in downloads { download.stop() }
    pool.close(until: .now + .seconds(10))
    for download in state.withLock({ Array($0.downloads.values) }) { download.end() }
    keeper.stop()
    keepHouse(isLast: true)
    if database.isInMemory { opener.markBehind() }
    database.close()
    directory.unlock()
    state.withLock { state in
      state.downloads = [:]
      state.questions = [:]
    }
  }

  /// Why nothing is kept, in words for people; nil while files that are read are kept.
  package var trouble: String? {
    if let refusal = directory.refusal { return refusal.description }
    if let obstacle = directory.obstacle { return obstacle.description }
    if let refusal = state.withLock({ $0.refusal }) { return refusal.description }
    return database.isInMemory ? "its index cannot be written" : nil
  }

  /// Notes whether a file could be kept: the last one counts.
  func note(_ refusal: Errno?) {
    state.withLock { $0.refusal = refusal }
  }

  /// How much is kept, and how much may be.
  package var usage: CacheUsage {
    state.withLock { state in
      CacheUsage(bytes: state.bytes, limit: limit, files: state.copies.count)
    }
  }

  /// The most bytes that copies may take; nil for no bound.
  var limit: Int64? { options.cacheSize.map { max(0, $0) } }

  /// How many bytes of a large object are fetched at least.
  var partUnit: Int64 { max(1, min(1 << 20, options.partSize)) }
}
