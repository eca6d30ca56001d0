import BucketStore
import FileCache
import Foundation
import Platform
import TestSupport

/// A cache over a store in memory, in a folder of its own.
final class CacheFixture {
  let scratch: Scratch
  let store = MemoryStore()
  var options: CacheOptions
  private var opened: FileCache?

  init(_ change: (inout CacheOptions) -> Void = { _ in }) throws {
    scratch = try Scratch()
    options = CacheOptions(
      directory: scratch.path("cache"), mountPoint: "/mnt/here", identity: "somebody")
    options.maxAge = .zero
    change(&options)
    store.createBucket("b")
  }

  deinit {
    opened?.close()
  }

  /// The cache, opened at its first use.
  func cache() throws -> FileCache {
    if let opened { return opened }
    let cache = try FileCache(options: options, store: store)
    opened = cache
    return cache
  }

  /// Ends the cache in order and opens it again.
  func reopen() throws -> FileCache {
    opened?.close()
    opened = nil
    return try cache()
  }

  func close() {
    opened?.close()
    opened = nil
  }

  /// How often the store was asked for an object.
  var gets: Int { store.requests.filter { $0.route == .get }.count }

  /// The path of a file in the cache's folder.
  func path(_ name: String) -> String { scratch.path("cache/" + name) }

  func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

  func contents(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: path(name)).map { Array($0) }
  }
}

func object(_ key: ByteString) -> ObjectName { ObjectName(bucket: "b", key: key) }

extension OpenFile {
  /// All bytes, read in pieces.
  func readAll(_ call: Call = Call(), piece: Int = 131_072) throws(StoreError) -> [UInt8] {
    var result: [UInt8] = []
    while true {
      let bytes = try readBytes(piece, at: Int64(result.count), call)
      if bytes.isEmpty { return result }
      result += bytes
    }
  }

  func readBytes(_ count: Int, at offset: Int64, _ call: Call = Call()) throws(StoreError)
    -> [UInt8]
  {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    defer { buffer.deallocate() }
    let done = try read(buffer, at: offset, call)
    return Array(buffer.prefix(done))
  }
}

extension FileCache {
  /// Opens, reads and closes.
  func contents(_ object: ObjectName, _ call: Call = Call()) throws(StoreError) -> [UInt8] {
    let file = try open(object, call)
    defer { file.close() }
    return try file.readAll(call)
  }
}

/// Waits until something holds, for ten seconds at most.
func eventually(_ condition: () -> Bool) -> Bool {
  for _ in 0..<1000 {
    if condition() { return true }
    usleep(10_000)
  }
  return condition()
}
