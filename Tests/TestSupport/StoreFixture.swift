package import BucketStore
import Foundation
package import Platform

/// A store under test, with a way round it to put objects there and take them away.
package protocol StoreFixture: Sendable {
  var store: any BucketStore { get }
  /// Whether every key is allowed, or only those of the store's alphabet.
  var allowsAnyKey: Bool { get }
  func createBucket(_ name: String) throws
  /// Writes an object, replacing it where it exists; its tag changes unless the bytes are equal.
  func put(_ bucket: String, _ key: String, _ bytes: [UInt8]) throws
  func remove(_ bucket: String, _ key: String) throws
}

/// A plain directory with its buckets in a temporary folder.
package final class DirectoryFixture: StoreFixture {
  package let store: any BucketStore
  package let allowsAnyKey = true
  private let scratch: Scratch

  package init(pageSize: Int = 1000) throws {
    scratch = try Scratch()
    store = try DirectoryStore(scratch.path, pageSize: pageSize)
  }

  /// Where the buckets lie.
  package var path: String { scratch.path }

  package func createBucket(_ name: String) throws { try scratch.folder(name) }

  package func put(_ bucket: String, _ key: String, _ bytes: [UInt8]) throws {
    try scratch.file("\(bucket)/\(key)", bytes)
  }

  package func remove(_ bucket: String, _ key: String) throws {
    try FileManager.default.removeItem(atPath: scratch.path("\(bucket)/\(key)"))
  }
}

/// Collects what a store hands to it.
package final class CollectingSink: GetSink {
  private struct State {
    var heads: [ObjectHead] = []
    var bytes: [UInt8] = []
  }

  private let state = Locked(State())
  private let limit: Int

  /// - Parameter limit: declines bytes beyond this many.
  package init(limit: Int = .max) {
    self.limit = limit
  }

  package var heads: [ObjectHead] { state.withLock { $0.heads } }
  package var bytes: [UInt8] { state.withLock { $0.bytes } }

  package func begin(_ head: ObjectHead) -> Bool {
    state.withLock { $0.heads.append(head) }
    return true
  }

  package func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    state.withLock { state in
      guard state.bytes.count + bytes.count <= limit else { return false }
      state.bytes.append(contentsOf: bytes)
      return true
    }
  }
}

/// Bytes in memory as the source of an upload.
package final class BytesSource: PutSource {
  private let bytes: [UInt8]

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  package func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
  {
    let rest = bytes.dropFirst(Int(offset)).prefix(buffer.count)
    buffer.copyBytes(from: rest)
    return rest.count
  }
}
