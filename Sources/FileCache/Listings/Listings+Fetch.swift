import BucketStore
import Platform

extension Listings {
  /// Asks the store for a folder, page by page, and keeps the answer.
  ///
  /// - Returns: `tooLong` when there were more pages than `pageLimit`; then nothing is kept.
  func fetch(_ folder: FolderName, pageLimit: Int?, _ call: Call) throws(StoreError)
    -> ListingFetch.Outcome
  {
    let startedAt = Timestamp.now
    let start = Instant.now
    let before = kept(folder)
    let isCredible = store.session.isCredible
    var builder = ListingBuilder(folder, names: options.names)
    if folder.isBuckets {
      try fetchBuckets(into: &builder, before, call)
    } else {
      do throws(StoreError) {
        let isWhole = try fetchPages(of: folder, into: &builder, pageLimit, startedAt, call)
        guard isWhole else { return .tooLong }
        try expandHidden(&builder, before, call)
      } catch {
        // A store may answer so instead of with an empty page; both are judged below.
        guard error.kind == .notFound else { throw error }
        // After a page it is no empty folder: what came is a part, and no part is a listing.
        if builder.isProven {
          throw StoreError(.server, "\(folder): the listing ended halfway: \(error)")
        }
      }
    }
    guard isCredible && store.session.isCredible || (before == nil && builder.isProven) else {
      throw StoreError(.sessionExpired, "\(folder): nobody is signed in, or not yet again")
    }
    if !builder.isProven, !folder.isBuckets { try confirmEmpty(folder, call) }
    let cost = Instant.now.since(start)
    let listing = builder.finish(fetchedAt: startedAt, cost: cost, after: before)
    keep([(listing, before)])
    return .listing(listing)
  }

  private func fetchPages(
    of folder: FolderName, into builder: inout ListingBuilder, _ pageLimit: Int?,
    _ startedAt: Timestamp, _ call: Call
  ) throws(StoreError) -> Bool {
    var request = ListRequest(bucket: folder.bucket, prefix: folder.prefix, delimited: true)
    var pages = 0
    while true {
      let page = try self.page(request, call)
      for object in page.objects { builder.add(object) }
      for prefix in page.folders {
        builder.add(folder: prefix.dropFirst(folder.prefix.count).dropLast())
      }
      options.confirm(page.objects, folder.bucket, startedAt)
      pages += 1
      guard let next = page.next else { return true }
      if let pageLimit, pages >= pageLimit { return false }
      request.cursor = next
    }
  }

  /// Names the keys beneath folders that cannot be shown: one page of each, since they are rare.
  private func expandHidden(
    _ builder: inout ListingBuilder, _ before: Listing?, _ call: Call
  ) throws(StoreError) {
    guard store.capabilities.flatListing else { return }
    let bucket = builder.folder.bucket
    for prefix in builder.hiddenPrefixes.prefix(16) {
      let known = before?.hiddenKeys.filter { $0.hasPrefix(prefix) } ?? []
      if !known.isEmpty {
        builder.expand(prefix, to: known)
        continue
      }
      let page: ListPage
      do throws(StoreError) {
        page = try self.page(ListRequest(bucket: bucket, prefix: prefix, delimited: false), call)
      } catch {
        // What may not be read, or is gone meanwhile, keeps its prefix in place of its keys.
        let kinds: [StoreError.Kind] = [.refused, .notFound, .unsupported]
        guard kinds.contains(error.kind) else { throw error }
        continue
      }
      if !page.objects.isEmpty { builder.expand(prefix, to: page.objects.map(\.key)) }
    }
  }

  /// An empty answer is no proof: the bucket may be missing, or hidden from the caller.
  ///
  /// - Throws: `StoreError`; `notFound` when the folder is gone, and with it what was kept of it.
  private func confirmEmpty(_ folder: FolderName, _ call: Call) throws(StoreError) {
    guard try store.bucketExists(folder.bucket, call) else {
      forget(FolderName(bucket: folder.bucket))
      throw StoreError(.notFound, "there is no bucket \(folder.bucket)")
    }
    if folder.isBucket || folder == options.root { return }
    forget(folder)
    throw StoreError(.notFound, "there is no folder \(folder)")
  }

  /// The buckets that the store lists, those that the person named, and those that were reached by
  /// their names.
  private func fetchBuckets(
    into builder: inout ListingBuilder, _ before: Listing?, _ call: Call
  ) throws(StoreError) {
    var listed: [BucketInfo] = []
    do throws(StoreError) {
      listed = try store.buckets(call)
    } catch {
      // Who may not list buckets may yet read them; others' failures are failures.
      guard error.kind == .refused || error.kind == .unsupported || error.kind == .notFound else {
        if before == nil, !options.namedBuckets.isEmpty, error.kind != .cancelled {
          Log.info("the buckets are not known, only those named are shown: \(error)")
          addNamed(to: &builder)
          return
        }
        throw error
      }
      Log.debug("the store lists no buckets: \(error)")
    }
    for bucket in listed { builder.add(folder: bucket.name, modified: bucket.created) }
    var seen = Set(listed.map(\.name))
    for index in 0..<(before?.count ?? 0) {
      guard let entry = before?[index], !seen.contains(entry.name) else { continue }
      // One that was listed and is not any more is gone, unless the store lists none at all.
      guard entry.kind == .unlistedBucket || listed.isEmpty else { continue }
      guard listed.isEmpty, try !store.bucketExists(entry.name, call) else {
        builder.add(folder: entry.name, kind: .unlistedBucket, modified: entry.modified)
        seen.insert(entry.name)
        continue
      }
    }
    for name in options.namedBuckets where !seen.contains(name) {
      builder.add(folder: name, kind: .unlistedBucket)
    }
  }

  private func addNamed(to builder: inout ListingBuilder) {
    for name in options.namedBuckets { builder.add(folder: name, kind: .unlistedBucket) }
  }

  /// Asks for a bucket that is not listed, by its name.
  func probe(_ name: ByteString, _ buckets: Listing, _ call: Call) throws(StoreError) -> (
    entry: ListingEntry?, believed: Span
  ) {
    if let known = state.withLock({ $0.points.entry(name, in: .buckets, at: .now) }) {
      return known
    }
    guard let segment = options.names.segment(of: name) else { return (nil, options.maxAge) }
    let start = Instant.now
    let exists: Bool
    do throws(StoreError) {
      exists = try store.bucketExists(segment, call)
    } catch {
      // Where the store lists its buckets, a name that is not among them is none.
      if error.kind == .cancelled || buckets.count == 0 { throw error }
      return (nil, min(options.maxAge, .seconds(1)))
    }
    let entry =
      exists
      ? ListingEntry(name: name, kind: .unlistedBucket, modified: .now) : nil
    if let entry { replace(name, in: .buckets, with: entry) }
    let believed = max(options.maxAge, Instant.now.since(start) * 10)
    state.withLock { $0.points.set(name, in: .buckets, entry, until: .now + believed) }
    return (entry, believed)
  }
}
