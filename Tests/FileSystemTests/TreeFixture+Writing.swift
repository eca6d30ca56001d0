import BucketStore
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// What programs do to files, as the kernel hands it on.
extension TreeFixture {
  var queue: PendingQueue { get throws { try #require(tree.queue) } }

  /// Stops sending; what is written stays pending.
  func hold() { gate?.withLock { $0 = .offline } }

  /// The store cannot be reached from now on, by anybody.
  func goOffline() {
    hold()
    store.outage = StoreError(.connectivity, "no route")
  }

  func goOnline() throws {
    store.outage = nil
    gate?.withLock { $0 = .open }
    try queue.gateChanged()
  }

  /// Waits until everything is stored.
  func drain() throws -> WaitOutcome {
    try queue.wait(until: .now + .seconds(60), Cancellation())
  }

  private static func split(_ path: ByteString) -> (parent: ByteString, name: ByteString) {
    let parts = path.split(at: ByteString.slash)
    let parent = parts.dropLast().map(\.bytes).joined(separator: [ByteString.slash])
    return (ByteString(Array(parent)), parts.last ?? "")
  }

  func create(_ path: ByteString, flags: CInt = O_WRONLY | O_CREAT) throws -> FileHandle {
    let (parent, name) = Self.split(path)
    return try tree.create(
      name, in: inode(parent), mode: 0o644, flags: flags, Self.slow
    ).handle
  }

  func write(_ handle: FileHandle, _ bytes: [UInt8], at offset: Int64 = 0) throws {
    try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in
      try tree.write(handle, UnsafeRawBufferPointer(bytes), at: offset, Self.slow)
    }
  }

  /// Makes or replaces a file, as cp(1) does.
  func put(_ path: ByteString, _ bytes: [UInt8]) throws {
    let handle =
      try find(path).map { entry in
        try tree.open(entry.inode, flags: O_WRONLY | O_TRUNC, Self.slow)
      } ?? create(path)
    defer { handle.close() }
    try write(handle, bytes)
    try tree.flush(handle, TreeFixture.slow)
  }

  func makeFolder(_ path: ByteString) throws {
    let (parent, name) = Self.split(path)
    _ = try tree.makeFolder(name, in: inode(parent), mode: 0o755, Self.slow)
  }

  func remove(_ path: ByteString) throws {
    let (parent, name) = Self.split(path)
    try tree.remove(name, from: inode(parent), Self.slow)
  }

  func removeFolder(_ path: ByteString) throws {
    let (parent, name) = Self.split(path)
    try tree.removeFolder(name, from: inode(parent), Self.slow)
  }

  func rename(_ path: ByteString, to target: ByteString, flags: UInt32 = 0) throws {
    let (parent, name) = Self.split(path)
    let (newParent, newName) = Self.split(target)
    try tree.rename(
      name, in: inode(parent), to: newName, in: inode(newParent), flags: flags, Self.slow)
  }

  func set(_ path: ByteString, _ change: (inout AttributeChanges) -> Void) throws {
    var changes = AttributeChanges()
    change(&changes)
    _ = try tree.set(changes, of: inode(path), nil, Self.slow)
  }

  /// The keys that the store has, without those that keep folders.
  func keys() -> [ByteString] {
    store.keys("b").filter { !$0.hasSuffix(".emptyFolderPlaceholder") }.sorted()
  }

  func state(_ path: ByteString) throws -> String {
    String(
      decoding: try tree.extendedAttribute("user.bucketfs.state", of: inode(path), Self.slow),
      as: UTF8.self)
  }
}
