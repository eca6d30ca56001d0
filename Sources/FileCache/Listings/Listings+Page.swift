import BucketStore
import Platform

extension Listings {
  /// Asks the store for one page, and takes it only when all that it names lies beneath the prefix.
  ///
  /// Names are cut out of keys by the prefix's length, so a foreign key would become a wrong name.
  /// - Throws: `StoreError`; `server` for a page that names anything else.
  func page(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    let page = try store.list(request, call)
    let prefix = request.prefix
    let isBeneath =
      page.objects.allSatisfy { $0.key.hasPrefix(prefix) }
      && page.folders.allSatisfy {
        $0.hasPrefix(prefix) && $0.count > prefix.count && $0.hasSuffix("/")
      }
    guard isBeneath else {
      throw StoreError(
        .server, "the listing of \(request.bucket)/\(prefix) names what does not lie in it")
    }
    return page
  }
}
