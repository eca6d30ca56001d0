package import BucketStore
package import Platform

/// The listings of folders that the device keeps.
package final class Listings: Sendable {
  package let options: ListingOptions
  private let store: any BucketStore
  private let state = Locked(State())

  private struct State {
    var listings: [FolderName: Listing] = [:]
  }

  package init(store: any BucketStore, options: ListingOptions) {
    self.store = store
    self.options = options
  }

  /// What is kept of a folder, however old; never asks the store.
  package func kept(_ folder: FolderName) -> Listing? {
    state.withLock { $0.listings[folder] }
  }

  /// The listing of a folder that needs no asking; memory only.
  package func fresh(_ folder: FolderName) -> Listing? {
    guard let listing = kept(folder), listing.freshness(options.maxAge) > .zero else { return nil }
    return listing
  }

  /// The listing of a folder: the kept one while it is fresh, else the store's.
  ///
  /// - Throws: `StoreError`; `notFound` when the folder does not exist.
  package func current(_ folder: FolderName, _ call: Call) throws(StoreError) -> Listing {
    if let listing = fresh(folder) { return listing }
    let start = Timestamp.now
    let before = kept(folder)
    var builder = ListingBuilder(folder, names: options.names)
    if folder.isBuckets {
      for bucket in try store.buckets(call) {
        builder.add(folder: bucket.name, modified: bucket.created)
      }
    } else {
      var request = ListRequest(bucket: folder.bucket, prefix: folder.prefix, delimited: true)
      repeat {
        let page = try store.list(request, call)
        for object in page.objects { builder.add(object) }
        for prefix in page.folders {
          builder.add(folder: prefix.dropFirst(folder.prefix.count).dropLast())
        }
        request.cursor = page.next
      } while request.cursor != nil
      if !builder.isProven {
        let exists = folder.isBucket ? try store.bucketExists(folder.bucket, call) : false
        guard exists else { throw StoreError(.notFound, "no such folder") }
      }
    }
    let listing = builder.finish(
      fetchedAt: start, cost: Timestamp.now.since(start), after: before)
    state.withLock { $0.listings[folder] = listing }
    return listing
  }
}
