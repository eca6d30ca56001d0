import BucketStore
import FileCache
import Platform

/// Fetches the files that are likely to be opened next, so that a folder that is read file by file
/// does not cost a round trip to the store for each.
///
/// Bounded in files and in bytes; a failure ends it for the folder, and so does an open out of the
/// order. What is fetched is kept like what was opened. Guarded by its own lock, which is a leaf.
final class FileReadAhead: Sendable {
  private struct State {
    var folders: [FolderName: FolderOrders] = [:]
    /// Bytes on their way, by object.
    var onTheirWay: [ObjectName: Int64] = [:]
  }

  private let state = Locked(State())
  private let pool = WorkerPool(name: "read-ahead", limit: OpenRun.mostAhead)
  private let cache: FileCache

  /// The most bytes that are on their way at once.
  private static let mostBytes: Int64 = 64 << 20
  /// How many folders are watched at once.
  private static let mostFolders = 64
  /// For how long an order is believed to go on: somebody may be looking at pictures.
  private static let memory = Span.seconds(60)

  init(_ cache: FileCache) {
    self.cache = cache
  }

  /// Whether nothing is on its way.
  var isIdle: Bool { state.withLock { $0.onTheirWay.isEmpty } }

  /// Whether opens in a folder are being followed.
  func follows(_ folder: FolderName) -> Bool {
    state.withLock { !$0.folders.isEmpty && $0.folders[folder] != nil }
  }

  /// Notes that a file is opened, and starts to fetch what is likely to be opened next. Never waits.
  ///
  /// - Parameters:
  ///   - inode: the number of an entry of the listing; nil for what has none.
  ///   - object: what may be fetched for an entry; nil for folders and what is pending.
  func opened(
    _ name: ByteString, in listing: Listing,
    inode: (ListingEntry) -> UInt64?, object: (ListingEntry) -> ObjectName?
  ) {
    let folder = listing.folder
    let (wanted, stop, outdated) = state.withLock {
      state -> ([ListingEntry], Cancellation, Cancellation?) in
      var outdated: Cancellation?
      if let orders = state.folders[folder],
        Instant.now.since(orders.last) > Self.memory
          || !orders.isOf(listing)
      {
        outdated = orders.stop
        state.folders[folder] = nil
      }
      var orders = state.folders[folder] ?? FolderOrders(listing)
      let wasInOrder = orders.isInOrder
      let wanted = orders.opened(name, inode: inode)
      if wasInOrder, !orders.isInOrder {
        outdated = orders.stop
        orders = FolderOrders(listing)
      }
      state.folders[folder] = orders
      if state.folders.count > Self.mostFolders,
        let oldest = state.folders.min(by: { $0.value.last < $1.value.last })?.key
      {
        state.folders[oldest] = nil
      }
      return (wanted, orders.stop, outdated)
    }
    outdated?.cancel()
    for entry in wanted {
      guard let object = object(entry), let size = entry.size, take(object, size) else {
        continue
      }
      let isTaken = pool.run { [self] in
        fetch(object, in: folder, Call(timeout: cache.options.timeout, cancellation: stop))
      }
      if !isTaken { leave(object) }
    }
  }

  /// Lets nothing more be fetched.
  func close() {
    let stops = state.withLock { state -> [Cancellation] in
      defer { state.folders = [:] }
      return state.folders.values.map(\.stop)
    }
    for stop in stops { stop.cancel() }
    pool.close(until: .now + .seconds(5))
  }

  /// Whether an object may be fetched: small enough, not kept, and not too much on its way.
  private func take(_ object: ObjectName, _ size: Int64) -> Bool {
    guard size <= cache.options.partSize, !cache.isKeptOrComing(object) else { return false }
    let most = min(Self.mostBytes, cache.usage.limit.map { $0 / 4 } ?? .max)
    return state.withLock { state in
      guard state.onTheirWay[object] == nil,
        state.onTheirWay.values.reduce(size, +) <= most
      else { return false }
      state.onTheirWay[object] = size
      return true
    }
  }

  private func leave(_ object: ObjectName) {
    state.withLock { $0.onTheirWay[object] = nil }
  }

  private func fetch(_ object: ObjectName, in folder: FolderName, _ call: Call) {
    defer { leave(object) }
    guard !call.cancellation.isCancelled, !cache.isKeptOrComing(object) else { return }
    do throws(StoreError) {
      _ = try cache.ensure(object, call)
    } catch {
      // Whoever opens it is told; the rest of the folder would hardly fare better.
      Log.debug("\(object): not fetched ahead: \(error)")
      guard error.kind != .notFound else { return }
      call.cancellation.cancel()
      state.withLock { $0.folders[folder] = nil }
    }
  }
}
