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
  var byteCount: Int { names.byteCount + tags.byteCount + count * 45 }

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

  /// Where a name is, or would be, once the entries are in order.
  func place(of name: ByteString) -> (index: Int, isFound: Bool) { names.place(of: name) }

  func name(at index: Int) -> ByteString { ByteString(names[index]) }

  func kind(at index: Int) -> ListingEntry.Kind {
    ListingEntry.Kind(rawValue: kinds[index]) ?? .file
  }

  func modified(at index: Int) -> Timestamp? {
    times[index] == Self.unknownTime ? nil : Timestamp(nanoseconds: times[index])
  }

  /// The latest of the times; nil when none is known.
  var newest: Timestamp? {
    times.max().flatMap { $0 == Self.unknownTime ? nil : Timestamp(nanoseconds: $0) }
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
      contentType: type(at: index))
  }

  /// Whether both share their memory; an empty table shares with every other.
  func isIdentical(to other: ListingTable) -> Bool {
    times.withUnsafeBufferPointer { mine in
      other.times.withUnsafeBufferPointer { mine.baseAddress == $0.baseAddress }
    }
  }

  static func == (left: ListingTable, right: ListingTable) -> Bool {
    // The numbers of the types may be given in another order.
    left.kinds == right.kinds && left.sizes == right.sizes && left.times == right.times
      && left.names == right.names && left.tags == right.tags
      && left.types.indices.allSatisfy { left.type(at: $0) == right.type(at: $0) }
  }

  private func type(at index: Int) -> String? {
    types[index] == Self.unknownType ? nil : typeNames[Int(types[index])]
  }

  /// What differs in another table of the folder: names that lead elsewhere or nowhere there, and
  /// names that are only there.
  func changes(to other: ListingTable) -> (changed: [ByteString], added: [ByteString]) {
    var changed: [ByteString] = []
    var added: [ByteString] = []
    var left = 0
    var right = 0
    while left < count || right < other.count {
      let order =
        if left == count { 1 } else if right == other.count { -1 } else {
          names.compare(left, right, of: other.names)
        }
      if order == 0 {
        if !isSame(left, right, of: other) { changed.append(name(at: left)) }
        left += 1
        right += 1
      } else if order < 0 {
        changed.append(name(at: left))
        left += 1
      } else {
        added.append(other.name(at: right))
        right += 1
      }
    }
    return (changed, added)
  }

  private func isSame(_ index: Int, _ otherIndex: Int, of other: ListingTable) -> Bool {
    kinds[index] == other.kinds[otherIndex] && sizes[index] == other.sizes[otherIndex]
      && times[index] == other.times[otherIndex] && tags[index] == other.tags[otherIndex]
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
