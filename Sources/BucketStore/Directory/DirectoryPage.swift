import Platform

/// A page of a directory's listing while it fills: where it starts, what it holds, when it is full.
struct DirectoryPage {
  /// The folder to begin the walk in: the prefix up to its last `/`.
  let startFolder: ByteString

  private let prefix: ByteString
  /// The last key or folder of the page before; everything up to it is passed over.
  private let after: ByteString?
  private let limit: Int
  private var objects: [ObjectInfo] = []
  private var folders: [ByteString] = []
  private var last: ByteString?
  private var overflowed = false

  init(_ request: ListRequest, limit: Int) {
    prefix = request.prefix
    after = request.cursor.flatMap { Percent.decode($0.text.utf8) }
    self.limit = limit
    let cut = prefix.bytes.lastIndex(of: ByteString.slash).map { $0 + 1 } ?? 0
    startFolder = ByteString(prefix.bytes[..<cut])
  }

  /// Whether one more than fits was seen.
  var isFull: Bool { overflowed }

  func wants(_ key: ByteString) -> Bool {
    key.hasPrefix(prefix) && (after.map { $0 < key } ?? true)
  }

  /// Whether a folder's prefix can have wanted keys below it.
  func mayHoldWanted(_ folder: ByteString) -> Bool {
    guard folder.hasPrefix(prefix) || prefix.hasPrefix(folder) else { return false }
    guard let after else { return true }
    return after < folder || after.hasPrefix(folder)
  }

  mutating func add(_ object: ObjectInfo) {
    guard makeRoom() else { return }
    objects.append(object)
    last = object.key
  }

  mutating func add(folder: ByteString) {
    guard makeRoom() else { return }
    folders.append(folder)
    last = folder
  }

  private mutating func makeRoom() -> Bool {
    overflowed = objects.count + folders.count == limit
    return !overflowed
  }

  func finish() -> ListPage {
    ListPage(
      objects: objects, folders: folders,
      next: overflowed ? last.map { ListCursor(Percent.encode($0)) } : nil)
  }
}
