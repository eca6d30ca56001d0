package import Platform

/// Listings by the server's exact call, version 2, and the way to the older one.
extension SupabaseStore {
  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    try check(bucket: request.bucket)
    guard let prefix = request.prefix.string else {
      // Keys are text: nothing begins with what is none.
      return ListPage(objects: [], folders: [], next: nil)
    }
    if features.withLock({ $0.listing }) == false { return try oldList(request, call) }
    let place = try request.cursor.map { (cursor) throws(StoreError) in
      try SupabaseCursor(cursor)
    }
    guard
      let answer = try page(
        request.bucket, prefix: prefix, delimited: request.delimited, cursor: place?.server, call)
    else {
      if request.cursor != nil {
        throw StoreError(.server, "the server's listing call was there and is gone")
      }
      features.withLock { $0.listing = false }
      return try oldList(request, call)
    }
    features.withLock { $0.listing = true }
    var page = ListPage(
      objects: answer.objects.map { $0.info(ByteString($0.name)) },
      folders: answer.folders.map { Self.folder(ByteString($0.name), below: request.prefix) },
      next: nil)
    let border = request.delimited ? Self.border(of: page, below: request.prefix) : nil
    if let covered = place?.covered {
      page.objects.removeAll { covered.contains($0.key) }
      page.folders.removeAll { covered.contains($0) }
    }
    var next = try answer.hasNext ? following(answer, place) : nil
    var covered: SupabaseCursor.Gap?
    switch border {
    case .object(let file)
    where answer.hasNext || answer.objects.count + answer.folders.count >= pageSize:
      covered = SupabaseCursor.Gap(after: file)
      let gap = try gap(after: file, request, call)
      page.objects += gap.objects
      page.folders += gap.folders
    case .nameless where next != nil:
      // The server's own cursor would pass over the rest of this folder.
      next = SupabaseCursor.beyond(request.prefix + "/") ?? next
    default: break
    }
    page.next = next.map { SupabaseCursor(server: $0, covered: covered).cursor }
    return page
  }

  /// The last entry of a page, where what follows it needs care.
  private enum Border {
    case object(ByteString)
    /// The folder without a name, of a key such as `a//b` below `a/`.
    case nameless
  }

  /// A page's two arrays are each in order; the later of their last names ends it.
  private static func border(of page: ListPage, below prefix: ByteString) -> Border? {
    if let folder = page.folders.last, page.objects.last.map({ $0.key < folder }) ?? true {
      return folder == prefix + "/" ? .nameless : nil
    }
    return page.objects.last.map { .object($0.key) }
  }

  /// The server names the folder of `a//b` below `a/` as `a/` itself: its name is `a//`.
  private static func folder(_ name: ByteString, below prefix: ByteString) -> ByteString {
    let named = name.hasSuffix("/") ? name : name + "/"
    return named == prefix ? prefix + "/" : named
  }

  private func following(_ page: SupabaseJSON.Page, _ place: SupabaseCursor?)
    throws(StoreError) -> String
  {
    guard let next = page.nextCursor, next != place?.server else {
      throw StoreError(.server, "the server's listing does not go on and does not end")
    }
    return next
  }

  /// One answer of the server, or nil when it has no such call.
  private func page(
    _ bucket: ByteString, prefix: String, delimited: Bool, cursor: String?, _ call: Call
  ) throws(StoreError) -> SupabaseJSON.Page? {
    let body = SupabaseJSON.ListBody(
      prefix: prefix, limit: pageSize, cursor: cursor, delimited: delimited)
    let response = try send(
      "POST", "/object/list-v2/" + Percent.encode(bucket),
      headers: [("Content-Type", "application/json")], body: SupabaseJSON.encode(body), call)
    guard response.status == 200 else {
      let verdict = SupabaseErrors.verdict(on: response, reading: true)
      // The call itself never misses a bucket; a server without it takes it for an upload into a
      // bucket of the call's name.
      if verdict.cause == .routeMissing || verdict.cause == .bucketMissing { return nil }
      throw verdict.error
    }
    return try SupabaseJSON.decode(SupabaseJSON.Page.self, from: response)
  }

  /// What the server leaves out where a page ends with an object F: with a delimiter the next page
  /// begins after `F/`, so names between F and `F/` (`F.json`, `F (1)`, a folder `F.d/`), and the
  /// folder `F/` itself, are in no page. A full page may claim to be the last for the same reason.
  ///
  /// A listing without delimiter is exact: it is read from F on, as far as `F/`. A folder in
  /// between is passed over at once by a cursor of our own making.
  private func gap(after file: ByteString, _ request: ListRequest, _ call: Call)
    throws(StoreError) -> ListPage
  {
    var found = ListPage(objects: [], folders: [], next: nil)
    guard let prefix = file.string else { return found }
    let end = file + "/"
    var cursor: String?
    while true {
      guard
        let answer = try page(
          request.bucket, prefix: prefix, delimited: false, cursor: cursor, call)
      else { throw StoreError(.server, "the server's listing call was there and is gone") }
      for row in answer.objects {
        let key = ByteString(row.name)
        if key.hasPrefix(end) {
          found.folders.append(end)
          return found
        }
        if key > end { return found }
        if key <= file { continue }
        let rest = key.bytes.dropFirst(request.prefix.count)
        if let slash = rest.firstIndex(of: ByteString.slash) {
          let folder = ByteString(key.bytes[...slash])
          if found.folders.last != folder { found.folders.append(folder) }
        } else {
          found.objects.append(row.info(key))
        }
      }
      guard answer.hasNext else { return found }
      cursor = try following(answer, cursor.map { SupabaseCursor(server: $0, covered: nil) })
      if let folder = found.folders.last, let last = answer.objects.last,
        ByteString(last.name).hasPrefix(folder), let beyond = SupabaseCursor.beyond(folder)
      {
        cursor = beyond
      }
    }
  }
}
