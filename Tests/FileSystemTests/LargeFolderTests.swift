import BucketStore
import FileCache
import FileSystem
import Foundation
import Platform
import TestSupport
import Testing

/// A folder of a hundred thousand objects.
@Suite struct LargeFolderTests {
  /// A bucket with one folder of that many objects, made as they are asked for: it takes no memory
  /// of its own that the test would measure.
  private final class EndlessStore: BucketStore {
    private let count: Int
    let capabilities = StoreCapabilities(flatListing: true, pageSize: 1000)
    let session = SessionState.keyOnly

    init(_ count: Int) { self.count = count }

    func buckets(_ call: Call) -> [BucketInfo] { [BucketInfo(name: "b", created: nil)] }

    func bucketExists(_ bucket: ByteString, _ call: Call) -> Bool { bucket == "b" }

    func list(_ request: ListRequest, _ call: Call) -> ListPage {
      if request.prefix.isEmpty, request.delimited {
        return ListPage(objects: [], folders: ["large/"], next: nil)
      }
      let start = request.cursor.flatMap { Int($0.text) } ?? 0
      let end = min(start + 1000, count)
      let objects = (start..<end).map { index in
        ObjectInfo(
          key: ByteString("large/photo-\(1_000_000 + index).jpg"), size: Int64(index),
          tag: "\"\(Digest.hex(.md5, of: Array("\(index)".utf8)))\"",
          modified: Timestamp(seconds: Int64(index)), contentType: "image/jpeg")
      }
      return ListPage(
        objects: objects, folders: [], next: end < count ? ListCursor("\(end)") : nil)
    }

    func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
      throw StoreError(.notFound, "none")
    }

    func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
      -> GetOutcome
    {
      throw StoreError(.notFound, "none")
    }
  }

  private static var residentBytes: Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return pages * 4096
  }

  @Test func aHundredThousandObjectsAreListedInBoundedMemory() throws {
    let count = 100_000
    let scratch = try Scratch()
    let store = EndlessStore(count)
    var options = CacheOptions(
      directory: scratch.path("cache"), mountPoint: "/mnt/here", identity: "x")
    options.maxAge = .seconds(600)
    let cache = try FileCache(options: options, store: store)
    defer { cache.close() }
    let tree = FileSystem(
      cache: cache, store: store, options: FileSystemOptions(uid: 0, gid: 0))
    let slow = TreeFixture.slow
    guard case .found(let bucket) = try tree.lookup("b", in: 1, slow),
      case .found(let large) = try tree.lookup("large", in: bucket.inode, slow)
    else {
      Issue.record("not found")
      return
    }
    let before = Self.residentBytes
    let start = Instant.now
    let handle = try tree.openDirectory(large.inode, slow)
    let listed = Instant.now
    #expect(handle.count == count + 2)
    for index in 2..<handle.count {
      guard tree.reference(index, of: handle) != nil else {
        Issue.record("entry \(index) is missing")
        return
      }
    }
    let grown = Self.residentBytes - before
    print(
      "\(count) entries: listed in \(listed.since(start).seconds) s, referenced in"
        + " \(Instant.now.since(listed).seconds) s, \(grown >> 20) MiB more")
    #expect(tree.nodeCount == count + 3)
    #expect(grown < 200 << 20)
    #expect(
      try tree.lookup("photo-1099999.jpg", in: large.inode, TreeFixture.fast)
        != .missing(timeout: .zero))
    handle.close()
  }
}
