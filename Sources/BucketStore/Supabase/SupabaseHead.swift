/// Tells an object's answer from another's by its headers.
///
/// The server sends every object with `ETag` and `Accept-Ranges`, and none as `text/html` (it says
/// `text/plain` then): a success without these is a page of a proxy or a captive portal.
enum SupabaseHead {
  /// What the answer's headers say of the object, checked against what was asked.
  static func read(_ response: HTTPResponse, _ request: GetRequest) throws(StoreError)
    -> ObjectHead
  {
    let headers = response.headers
    let type = headers["content-type"]
    guard response.status == 200 || response.status == 206, let tag = headers["etag"],
      headers["accept-ranges"] == "bytes" || headers["content-range"] != nil,
      !(type?.lowercased().contains("text/html") ?? false),
      headers["content-encoding"].map({ $0 == "identity" }) ?? true
    else {
      throw StoreError(
        .server,
        "a success that is not the store's own (HTTP \(response.status)): a page of a proxy?")
    }
    return try ObjectHead(response, to: request, tag: EntityTag.strong(tag))
  }
}
