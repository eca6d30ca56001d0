import BucketStore
import FileCache
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// A tree over a store in memory, with a cache in a folder of its own.
final class TreeFixture {
  let store = MemoryStore()
  let scratch: Scratch
  let maxAge: Span
  private(set) var cache: FileCache
  private(set) var tree: FileSystem
  let kernel = RecordingNotifier()
  private let change: (inout FileSystemOptions) -> Void
  /// What stands between the tree and the store.
  private let front: any BucketStore
  /// Whether the queue may send; nil for a tree that can only be read.
  let gate: Locked<UploadGate>?

  static let slow = Caller(processID: 1, lane: .slow, call: Call())
  static let brief = Caller(processID: 1, lane: .brief, call: Call())
  static let fast = Caller(processID: 1, lane: .fast, call: Call())

  init(
    maxAge: Span = .seconds(60), writing isWritable: Bool = false,
    _ change: @escaping (inout FileSystemOptions) -> Void = { _ in },
    behind front: (MemoryStore) -> any BucketStore = { $0 }
  ) throws {
    self.front = front(store)
    scratch = try Scratch()
    self.maxAge = maxAge
    self.change = change
    gate = isWritable ? Locked(.open) : nil
    (cache, tree) = try Self.mount(scratch, self.front, maxAge, change)
    try addQueue()
    tree.connect(kernel)
  }

  deinit {
    tree.queue?.close()
    cache.close()
  }

  /// Makes the tree anew over a queue, where files are to be written.
  private func addQueue() throws {
    guard let gate else { return }
    let queue = try PendingQueue(
      QueueOptions(
        directory: scratch.path("profile"), owner: "anna", gate: { gate.withLock { $0 } }),
      store: store)
    var options = Self.patient(FileSystemOptions(uid: 7, gid: 8, readOnly: false))
    change(&options)
    tree = FileSystem(cache: cache, store: front, queue: queue, options: options)
    try queue.start(receiver: tree)
  }

  /// Ends the mount and makes another one over the same cache.
  ///
  /// - Parameter meanwhile: what happens while nothing is mounted.
  func remount(_ meanwhile: () throws -> Void = {}) throws {
    tree.queue?.close()
    cache.close()
    try meanwhile()
    (cache, tree) = try Self.mount(scratch, front, maxAge, change)
    try addQueue()
    tree.connect(kernel)
  }

  /// A store in memory answers in no time: what a busy machine takes longer for is still waited for.
  private static func patient(_ options: FileSystemOptions) -> FileSystemOptions {
    var options = options
    options.patience = .seconds(60)
    return options
  }

  private static func mount(
    _ scratch: Scratch, _ store: any BucketStore, _ maxAge: Span,
    _ change: (inout FileSystemOptions) -> Void
  ) throws -> (FileCache, FileSystem) {
    var cacheOptions = CacheOptions(
      directory: scratch.path("cache"), mountPoint: "/mnt/here", identity: "somebody")
    cacheOptions.maxAge = maxAge
    let cache = try FileCache(options: cacheOptions, store: store)
    var options = Self.patient(FileSystemOptions(uid: 7, gid: 8))
    change(&options)
    return (cache, FileSystem(cache: cache, store: store, options: options))
  }

  /// Looks each name of a path up, as the kernel does.
  func find(_ path: ByteString, _ caller: Caller = slow) throws(Failure) -> Entry? {
    var entry = try tree.attributes(of: 1, caller)
    for name in path.split(at: ByteString.slash) where !name.isEmpty {
      guard case .found(let found) = try tree.lookup(name, in: entry.inode, caller) else {
        return nil
      }
      entry = found
    }
    return entry
  }

  func inode(_ path: ByteString) throws -> UInt64 {
    try #require(try find(path), "\(path) is not there").inode
  }

  /// The names in a folder, without `.` and `..`.
  func names(_ path: ByteString) throws -> [ByteString] {
    let handle = try tree.openDirectory(inode(path), Self.slow)
    defer { handle.close() }
    return (2..<handle.count).map { handle[$0].name }
  }

  /// Opens as the kernel does: after ESTALE it looks the path up anew and tries once more.
  func open(_ path: ByteString) throws -> FileHandle {
    do {
      return try tree.open(inode(path), flags: O_RDONLY, Self.slow)
    } catch let failure as Failure where failure.errno == Errno(ESTALE) {
      return try tree.open(inode(path), flags: O_RDONLY, Self.slow)
    }
  }

  func read(_ handle: FileHandle) throws -> [UInt8] {
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = try buffer.withUnsafeMutableBytes {
        try tree.read(handle, into: $0, at: Int64(result.count), Self.slow)
      }
      if count == 0 { return result }
      result += buffer.prefix(count)
    }
  }

  func contents(_ path: ByteString) throws -> [UInt8] {
    let handle = try open(path)
    defer { handle.close() }
    return try read(handle)
  }

  /// What ls -lR does: each folder is opened and read, its names are looked up, then the folders
  /// in it come.
  @discardableResult
  func walk(_ path: ByteString = "") throws -> [ByteString] {
    let parent = try inode(path)
    let handle = try tree.openDirectory(parent, Self.slow)
    defer { handle.close() }
    var found: [ByteString] = []
    var folders: [ByteString] = []
    for index in 2..<handle.count {
      let name = handle[index].name
      let full = path.isEmpty ? name : path + "/" + name
      guard case .found(let entry) = try tree.lookup(name, in: parent, Self.slow) else {
        throw Errno.noEntry
      }
      if entry.attributes.isDirectory { folders.append(full) } else { found.append(full) }
    }
    for folder in folders { found += try walk(folder) }
    return found
  }

  /// How many listings the store was asked for.
  var listings: Int {
    store.requests.filter { $0.route == .list || $0.route == .buckets }.count
  }

  func errno(_ body: () throws -> Void) -> Errno? {
    do {
      try body()
      return nil
    } catch let failure as Failure {
      return failure.errno
    } catch {
      Issue.record("\(error)")
      return nil
    }
  }
}

/// Notes what the kernel would be told.
final class RecordingNotifier: KernelNotifier {
  private let state = Locked((names: [ByteString](), inodes: [UInt64](), renewed: [UInt64]()))

  var names: [ByteString] { state.withLock { $0.names } }
  var inodes: [UInt64] { state.withLock { $0.inodes } }

  /// Inodes whose attributes were dropped within an open.
  var renewed: [UInt64] { state.withLock { $0.renewed } }

  func forgetAttributes(of inode: UInt64) {
    state.withLock { $0.renewed.append(inode) }
  }

  func invalidateEntry(parent: UInt64, name: ByteString) {
    state.withLock { $0.names.append(name) }
  }

  func invalidateInode(_ inode: UInt64) {
    state.withLock { $0.inodes.append(inode) }
  }
}
