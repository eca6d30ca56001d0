import Platform

/// The entries of a listing, in columns: about 80 bytes an entry where structures take 250.
struct ListingTable: Sendable, Equatable {
  private var names = PackedStrings()
  private var kinds: [UInt8] = []
  private var sizes: [Int64] = []
  private var times: [Int64] = []
  private var tags = PackedStrings()
  private var types: [UInt16] = []
  private var typeNames: [String] = []
  private var typeNumbers: [String: UInt16] = [:]

  private static let unknownSize: Int64 = -1
  private static let unknownTime = Int64.min
  private static let unknownType = UInt16.max

  var count: Int { kinds.count }

  /// About how much memory the entries take, in bytes.
  var byteCount: Int { names.byteCount + tags.byteCount + count * 35 }

  mutating func append(_ entry: ListingEntry) {
    names.append(entry.name.bytes)
    kinds.append(entry.kind.rawValue)
    sizes.append(entry.size ?? Self.unknownSize)
    times.append(entry.modified?.nanoseconds ?? Self.unknownTime)
    tags.append((entry.tag ?? "").utf8)
    types.append(number(of: entry.contentType))
  }

  private mutating func number(of type: String?) -> UInt16 {
    guard let type else { return Self.unknownType }
    if let number = typeNumbers[type] { return number }
    // Past so many types, which no person's bucket has, the rest are shown without one.
    guard typeNames.count < Int(Self.unknownType) else { return Self.unknownType }
    let number = UInt16(typeNames.count)
    typeNumbers[type] = number
    typeNames.append(type)
    return number
  }

  /// Where a name is, once the entries are in order; nil when it is not there.
  func index(of name: ByteString) -> Int? { names.search(name) }

  func name(at index: Int) -> ByteString { ByteString(names[index]) }

  func kind(at index: Int) -> ListingEntry.Kind {
    ListingEntry.Kind(rawValue: kinds[index]) ?? .file
  }

  func modified(at index: Int) -> Timestamp? {
    times[index] == Self.unknownTime ? nil : Timestamp(nanoseconds: times[index])
  }

  mutating func setModified(_ time: Timestamp, at index: Int) {
    times[index] = time.nanoseconds
  }

  subscript(_ index: Int) -> ListingEntry {
    let tag = tags[index]
    return ListingEntry(
      name: name(at: index), kind: kind(at: index),
      size: sizes[index] == Self.unknownSize ? nil : sizes[index],
      tag: tag.isEmpty ? nil : String(decoding: tag, as: UTF8.self),
      modified: modified(at: index),
      contentType: types[index] == Self.unknownType ? nil : typeNames[Int(types[index])])
  }

  /// The entries in bytewise order of their names, each name once.
  ///
  /// - Returns: of two entries with one name the folder stays; `lost` has the names of the files
  ///   that thereby went.
  func sorted() -> (table: ListingTable, lost: [ByteString]) {
    let isSorted = (1..<max(count, 1)).allSatisfy { names.compare($0 - 1, $0) < 0 }
    if isSorted { return (self, []) }
    let order = (0..<count).sorted { left, right in
      let order = names.compare(left, right)
      if order != 0 { return order < 0 }
      return kinds[left] == kinds[right] ? left > right : kinds[left] > kinds[right]
    }
    var result = ListingTable()
    var lost: [ByteString] = []
    var last: Int?
    for index in order {
      if let last, names.compare(last, index) == 0 {
        if kind(at: last) != .file, kind(at: index) == .file { lost.append(name(at: index)) }
        continue
      }
      last = index
      result.append(self[index])
    }
    return (result, lost)
  }
}
