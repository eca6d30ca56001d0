import Platform

/// One folder's listing by the older call, version 1, put together from all its pages.
///
/// That call names entries relative to the folder, pages by offset, and has defects:
/// - It does not tell case apart in the folder's path: `docs/` lists the entries of `Docs/` too,
///   and `_` may stand for any sign. Where a folder of the path has such a twin, files are told
///   apart by asking which exact keys exist, and folders by a file beneath them.
/// - Ordered by name, it reads rows in batches and goes on after `<last name>/`: names between are
///   lost, and folders that differ in case are shown as one. Ordered by a date it shows them all,
///   but equal dates may swap places between pages. So a folder of one page is taken by date, and
///   a larger one both ways, with a search for what may be lost at each batch's border.
///
/// Not found: a folder beneath a twin that holds nothing but folders, deeper than the probes go,
/// is shown though it may be the twin's.
struct SupabaseOldListing {
  let store: SupabaseStore
  let bucket: ByteString
  /// The folder, ending in `/`, or empty.
  let folder: ByteString
  /// What names begin with, in any case; empty for all.
  let start: ByteString
  let call: Call

  private typealias Row = SupabaseJSON.Row

  /// Every entry that begins with the folder and the start, in bytewise order.
  func read() throws(StoreError) -> ListPage {
    var rows = Rows()
    let pages = try collect(.created, folder, search: start, into: &rows)
    if pages > 1 { try collectByName(search: start, into: &rows) }
    let wanted = folder + start
    var objects = rows.objects.filter { (folder + $0.name).hasPrefix(wanted) }
    var folders = Array(rows.folders).filter { (folder + $0).hasPrefix(wanted) }
    if try hasTwin(of: folder) || rows.hasNamesakes {
      let existing = try store.existing(objects.map { folder + $0.name }, in: bucket, call)
      objects = try distinct(objects.filter { existing.contains(folder + $0.name) })
      var probes = 50
      folders = try folders.filterThrowing { (name) throws(StoreError) in
        try isReal(folder + name + "/", &probes)
      }
    }
    return ListPage(
      objects: objects.map { $0.row.info(folder + $0.name) }.sorted { $0.key < $1.key },
      folders: folders.map { folder + $0 + "/" }.sorted(), next: nil)
  }

  /// The facts of the object whose name is the start, or nil when the call does not find it.
  func find() throws(StoreError) -> ObjectInfo? {
    var rows = Rows()
    var offset = 0
    while true {
      let page = try page(.name, folder, search: start, offset: offset)
      for row in page { rows.add(row, .name) }
      offset += page.count
      let isBeyond = page.contains { row in
        row.id != nil
          && Self.lowered(start).lexicographicallyPrecedes(
            Self.lowered(ByteString(row.name)))
      }
      if isBeyond || page.count < store.pageSize { break }
    }
    let key = folder + start
    return try distinct(rows.objects.filter { $0.name == start }).first?.row.info(key)
  }

  private enum Order {
    case name
    case created
  }

  /// What was read, each object once.
  private struct Rows {
    struct Object {
      var name: ByteString
      var row: Row
    }

    private(set) var objects: [Object] = []
    private(set) var folders: Set<ByteString> = []
    private(set) var hasNamesakes = false
    private var identities: Set<String> = []
    private var names: Set<ByteString> = []

    /// - Parameter order: by name, a folder may be spelled as its twin is.
    mutating func add(_ row: Row, _ order: Order) {
      let name = ByteString(row.name)
      guard let id = row.id else {
        if order == .created { folders.insert(name) }
        return
      }
      guard identities.insert(id).inserted else { return }
      if !names.insert(name).inserted { hasNamesakes = true }
      objects.append(Object(name: name, row: row))
    }
  }

  /// Reads all pages in one order.
  ///
  /// - Parameter visit: sees every row, in order.
  /// - Returns: how many pages there were.
  private func collect(
    _ order: Order, _ folder: ByteString, search: ByteString, into rows: inout Rows,
    visit: (Row) -> Void = { _ in }
  ) throws(StoreError) -> Int {
    var offset = 0
    var pages = 0
    while true {
      let page = try self.page(order, folder, search: search, offset: offset)
      for row in page {
        rows.add(row, order)
        visit(row)
      }
      pages += 1
      offset += page.count
      if page.count < store.pageSize { return pages }
    }
  }

  private func page(
    _ order: Order, _ folder: ByteString, search: ByteString, offset: Int
  ) throws(StoreError) -> [Row] {
    try store.oldPage(
      bucket,
      SupabaseJSON.OldListBody(
        prefix: folder.text, limit: store.pageSize, offset: offset,
        search: search.isEmpty ? nil : search.text,
        sortBy: .init(column: order == .name ? "name" : "created_at")),
      call)
  }

  /// Reads by name, and searches behind each border of the server's batches.
  ///
  /// A batch holds as many files as `batch` says, counted anew after each folder.
  private func collectByName(search: ByteString, into rows: inout Rows) throws(StoreError) {
    let batch = min(1000, max(100, store.pageSize * 2))
    var waiting = [search]
    var searched: Set<ByteString> = [search]
    while let search = waiting.popLast() {
      var run = 0
      var borders: [ByteString] = []
      _ = try collect(.name, folder, search: search, into: &rows) { row in
        run = row.id == nil ? 0 : run + 1
        if run == batch {
          borders.append(ByteString(row.name))
          run = 0
        }
      }
      for border in borders where searched.insert(border).inserted { waiting.append(border) }
    }
  }

  /// Whether the older call mixes entries of another folder into this one's.
  private func hasTwin(of folder: ByteString) throws(StoreError) -> Bool {
    if folder.bytes.contains(UInt8(ascii: "_")) { return true }
    var parent = ByteString()
    for segment in folder.split(at: ByteString.slash).dropLast() {
      let lowered = Self.lowered(segment)
      for name in try folders(of: parent, search: segment)
      where name != segment && Self.lowered(name) == lowered {
        return true
      }
      parent = parent + segment + "/"
    }
    return false
  }

  /// The folders of a folder whose names begin so: ordered by date they come before the files.
  private func folders(of parent: ByteString, search: ByteString) throws(StoreError)
    -> [ByteString]
  {
    var found: [ByteString] = []
    var offset = 0
    while true {
      let page = try page(.created, parent, search: search, offset: offset)
      let folders = page.prefix { $0.id == nil }
      found += folders.map { ByteString($0.name) }
      if folders.count < store.pageSize { return found }
      offset += page.count
    }
  }

  /// Of files with one name, the one whose tag the exact key has.
  private func distinct(_ objects: [Rows.Object]) throws(StoreError) -> [Rows.Object] {
    var result: [Rows.Object] = []
    for (name, namesakes) in Dictionary(grouping: objects, by: \.name) {
      guard let first = namesakes.first else { continue }
      guard namesakes.count > 1 else {
        result.append(first)
        continue
      }
      let head = try store.oldHead(ObjectName(bucket: bucket, key: folder + name), call)
      let ours = namesakes.first { object in
        let facts = object.row.info(name)
        return facts.tag == head.tag && facts.size == head.size
      }
      result.append(ours ?? first)
    }
    return result
  }

  /// Whether a file lies beneath exactly this folder, as far as the probes go; true beyond.
  private func isReal(_ path: ByteString, _ probes: inout Int) throws(StoreError) -> Bool {
    guard probes > 0 else { return true }
    probes -= 1
    let page = try page(.created, path, search: "", offset: 0)
    let files = page.filter { $0.id != nil }.map { path + ByteString($0.name) }
    if try !store.existing(files, in: bucket, call).isEmpty { return true }
    for row in page where row.id == nil && !row.name.isEmpty {
      if try isReal(path + ByteString(row.name) + "/", &probes) { return true }
    }
    return false
  }

  private static func lowered(_ name: ByteString) -> [UInt8] {
    name.bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
  }
}

extension Sequence {
  fileprivate func filterThrowing<Failure: Error>(
    _ isIncluded: (Element) throws(Failure) -> Bool
  ) throws(Failure) -> [Element] {
    var result: [Element] = []
    for element in self where try isIncluded(element) { result.append(element) }
    return result
  }
}
