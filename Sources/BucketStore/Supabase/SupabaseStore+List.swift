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
      // Said of the bucket, not of the call: a missing one looks empty.
      guard try bucketExists(request.bucket, call) else {
        return ListPage(objects: [], folders: [], next: nil)
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
    case .entry(let name) where place?.covered?.contains(name) ?? false:
      covered = place?.covered
    case .entry(let name)
    where name.bytes.last != ByteString.slash
      && (answer.hasNext || answer.objects.count + answer.folders.count >= pageSize):
      covered = SupabaseCursor.Gap(after: name)
      let gap = try gap(after: name, request, call)
      page.objects += gap.objects
      page.folders += gap.folders
    case .nameless(let last) where next != nil:
      // The server's own cursor would pass over the rest of this folder.
      next = SupabaseCursor.beyond(last) ?? next
      covered = place?.covered
    case .entry, .nameless, nil: break
    }
    page.next = next.map { SupabaseCursor(server: $0, covered: covered).cursor }
    return page
  }

  /// The last entry of a page.
  private enum Border {
    /// An object, or a folder, whose name ends in `/`.
    case entry(ByteString)
    /// What the server shows under no name of its own: the object `a/` below `a/`, or the folder of
    /// `a//b` there; with the last name that it may have.
    case nameless(ByteString)
  }

  /// A page's two arrays are each in order; the later of their last names ends it.
  private static func border(of page: ListPage, below prefix: ByteString) -> Border? {
    let names = [page.objects.last?.key, page.folders.last].compactMap { $0 }
    guard let last = names.max() else { return nil }
    if last == prefix { return .nameless(last + "\u{1}") }
    return last == prefix + "/" ? .nameless(last + "\u{10FFFF}") : .entry(last)
  }

  /// The server trims all slashes from a folder's name and adds one: the folder of `a//b` below
  /// `a/` comes as `a/`, and that of `a///b` below `a//` too.
  private static func folder(_ name: ByteString, below prefix: ByteString) -> ByteString {
    let named = name.hasSuffix("/") ? name : name + "/"
    return named.count <= prefix.count ? prefix + "/" : named
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
      headers: SupabaseHeaders.json, body: .bytes(SupabaseJSON.encode(body)), mayCompress: true,
      call)
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
        ByteString(last.name).hasPrefix(folder),
        let beyond = SupabaseCursor.beyond(folder + "\u{10FFFF}")
      {
        cursor = beyond
      }
    }
  }
}
