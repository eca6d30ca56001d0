import BucketStore
import FileCache
import Foundation
import Platform
import TestSupport

/// A cache in a folder of its own, over a store in memory or a scripted one.
final class CacheFixture {
  let scratch: Scratch
  let store = MemoryStore()
  let script = ScriptedStore()
  var options: CacheOptions
  private let isScripted: Bool
  private var opened: FileCache?

  init(scripted: Bool = false, _ change: (inout CacheOptions) -> Void = { _ in }) throws {
    isScripted = scripted
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
    let cache = try FileCache(options: options, store: isScripted ? script : store)
    opened = cache
    return cache
  }

  /// Puts a file in the place of the folder of downloads.
  func makeTemporaryFilesImpossible() throws {
    try FileManager.default.removeItem(atPath: path("tmp"))
    try scratch.file("cache/tmp", [])
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

/// Every file below a folder, by relative path.
func files(below path: String) -> [String] {
  (FileManager.default.enumerator(atPath: path)?.allObjects ?? []).compactMap { $0 as? String }
    .filter { name in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isFolder)
        && !isFolder.boolValue
    }.sorted()
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

// An expectation that fails shows the values in it by reflection, which cannot look into
// noncopyable ones.
extension OpenFile: CustomReflectable {
  package var customMirror: Mirror { Mirror(self, children: ["version": version]) }
}

extension FileCache: CustomReflectable {
  package var customMirror: Mirror { Mirror(self, children: ["directory": options.directory]) }
}
