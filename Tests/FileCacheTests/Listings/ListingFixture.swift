import BucketStore
import FileCache
import Glibc
import Platform
import SQLite
import TestSupport

/// Listings over a store in memory, kept in the index of a cache in a folder of its own.
final class ListingFixture {
  let store = MemoryStore()
  private let scratch: Scratch
  private let options: ListingOptions
  private var cache: FileCache
  private(set) var listings: Listings
  let confirmed = Locked([ByteString]())

  init(
    maxAge: Span = .seconds(60), _ change: (inout ListingOptions) -> Void = { _ in }
  ) throws {
    scratch = try Scratch()
    var options = ListingOptions(maxAge: maxAge)
    options.confirm = { [confirmed] infos, _, _ in
      confirmed.withLock { $0 += infos.map(\.key) }
    }
    change(&options)
    self.options = options
    cache = try Self.cache(scratch, store)
    listings = Listings(store: store, database: cache.database, options: options)
    store.createBucket("b")
  }

  deinit { cache.close() }

  private static func cache(_ scratch: Scratch, _ store: MemoryStore) throws -> FileCache {
    try FileCache(
      options: CacheOptions(
        directory: scratch.path("cache"), mountPoint: "/mnt/here", identity: "somebody"),
      store: store)
  }

  /// Ends the program and starts it again.
  func restart() throws {
    cache.close()
    cache = try Self.cache(scratch, store)
    listings = Listings(store: store, database: cache.database, options: options)
  }

  /// The index that the listings are kept in.
  var database: Database { cache.database }

  /// The names in a folder, asked for as a reader of it does.
  func names(_ prefix: ByteString = "", _ call: Call = Call()) throws(StoreError) -> [ByteString] {
    if options.maxAge == .zero { expire(folder(prefix)) }
    return try listings.current(FolderName(bucket: "b", prefix: prefix), call).listing.names
  }

  /// Waits until a listing is no longer believed for what it cost.
  func expire(_ folder: FolderName) {
    while listings.fresh(folder) != nil { usleep(1000) }
  }

  /// The listing requests that the store got.
  var requests: [MemoryStore.Request] {
    store.requests.filter { $0.route == .list || $0.route == .buckets }
  }

  func fill(_ keys: [ByteString]) {
    for key in keys { store.put("b", key, Array(key.bytes)) }
  }
}

extension Listings {
  /// What the store says of a folder, or else what is kept of it, as the file system has both.
  func current(_ folder: FolderName, _ call: Call) throws(StoreError) -> Answer {
    do throws(StoreError) {
      return try asked(folder, call)
    } catch {
      return try standIn(folder, for: error)
    }
  }

  /// What the store says of a name, or else what is kept of its folder.
  func find(_ name: ByteString, in folder: FolderName, _ call: Call) throws(StoreError)
    -> (entry: ListingEntry?, believed: Span)
  {
    do throws(StoreError) {
      return try asked(name, in: folder, call)
    } catch {
      let answer = try standIn(folder, for: error)
      guard answer.listing.tells(of: name) else { throw error }
      return (answer.listing.entry(name), answer.believed)
    }
  }
}

extension Listing {
  var names: [ByteString] { (0..<count).map { self[$0].name } }
}

/// The folder in the tests' bucket.
func folder(_ prefix: ByteString) -> FolderName { FolderName(bucket: "b", prefix: prefix) }

/// The kind of the store's failure; nil when there was none.
func failure(_ body: () throws(StoreError) -> Void) -> StoreError.Kind? {
  do throws(StoreError) {
    try body()
    return nil
  } catch {
    return error.kind
  }
}
