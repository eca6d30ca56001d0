import Platform

/// A scan of one bucket's keys as the server's listing functions do it: rows that the caller may
/// not see are not there.
///
/// Folder by folder it looks at the next key (a peek); at a file it takes rows in a batch. Both
/// list versions share it; they differ in the order of the keys. The real functions resume behind
/// a batch at `<last name>/`, which passes over every name that goes on with a sign below `/`.
struct ListingScan {
  enum Entry {
    case folder(prefix: [UInt8], firstKey: ByteString)
    case object(ObjectRow)

    var isFolder: Bool {
      guard case .folder = self else { return false }
      return true
    }
  }

  private let entries: [KeyIndex.Entry]
  private let index: KeyIndex
  private let isVisible: (ByteString) -> ObjectRow?
  private let prefix: [UInt8]
  private let end: Int
  private let isFaithful: Bool
  private let descends: Bool

  /// - Parameters:
  ///   - prefix: as the index places keys, so in lower case for that order.
  ///   - isVisible: the row of a key that the caller may see.
  init(
    _ index: KeyIndex, prefix: [UInt8], descends: Bool, isFaithful: Bool,
    isVisible: @escaping (ByteString) -> ObjectRow?
  ) {
    self.index = index
    entries = index.entries
    self.prefix = prefix
    self.descends = descends
    self.isFaithful = isFaithful
    self.isVisible = isVisible
    end = Bucket.end(ofPrefix: prefix).map { index.position(of: $0) } ?? entries.count
  }

  /// Up to `limit` folders and objects.
  ///
  /// - Parameters:
  ///   - start: where the scan begins, a place of the index; when descending, what it ends before.
  ///   - batch: how many rows the server takes at once.
  func run(from start: [UInt8]?, limit: Int, batch: Int) -> [Entry] {
    descends
      ? runDown(before: start, limit: limit) : runUp(from: start, limit: limit, batch: batch)
  }

  private func runUp(from start: [UInt8]?, limit: Int, batch: Int) -> [Entry] {
    var result: [Entry] = []
    var position = index.position(of: max(start ?? prefix, prefix))
    var left = batch
    while result.count < limit, position < end {
      let entry = entries[position]
      guard let row = isVisible(entry.key) else {
        position += 1
        continue
      }
      if let folder = folder(of: entry.place) {
        result.append(.folder(prefix: folder, firstKey: entry.key))
        position = index.position(of: folder.dropLast() + [ByteString.slash + 1])
        left = batch
        continue
      }
      result.append(.object(row))
      left -= 1
      position += 1
      if left == 0 {
        left = batch
        if isFaithful {
          position = max(position, index.position(of: entry.place + [ByteString.slash]))
        }
      }
    }
    return result
  }

  private func runDown(before start: [UInt8]?, limit: Int) -> [Entry] {
    var result: [Entry] = []
    let first = index.position(of: prefix)
    var position = min(end, start.map { index.position(of: $0) } ?? end)
    while result.count < limit, position > first {
      let entry = entries[position - 1]
      guard let row = isVisible(entry.key) else {
        position -= 1
        continue
      }
      if let folder = folder(of: entry.place) {
        result.append(.folder(prefix: folder, firstKey: entry.key))
        position = index.position(of: folder)
      } else {
        result.append(.object(row))
        position -= 1
      }
    }
    return result
  }

  /// The place up to and with the first `/` behind the prefix; nil for an object of the folder.
  private func folder(of place: [UInt8]) -> [UInt8]? {
    guard let slash = place.dropFirst(prefix.count).firstIndex(of: ByteString.slash) else {
      return nil
    }
    return Array(place[...slash])
  }

  private func max(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    Bytes.compare(left, right) < 0 ? right : left
  }

  private func max(_ left: Int, _ right: Int) -> Int { left < right ? right : left }
}
