import BucketStore
import FileCache
import Platform
import TestSupport
import Testing

/// A store that names what was not asked for.
@Suite struct ListingForeignKeyTests {
  /// Answers every listing with one page.
  private final class ForeignStore: BucketStore {
    let capabilities = StoreCapabilities(flatListing: true, pageSize: 1000)
    let session = SessionState.keyOnly
    private let answer: ListPage

    init(objects: [ByteString], folders: [ByteString]) {
      answer = ListPage(
        objects: objects.map { ObjectInfo(key: $0, size: 1, tag: nil, modified: nil) },
        folders: folders, next: nil)
    }

    func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] { [] }
    func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool { true }
    func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage { answer }
    func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
      throw StoreError(.unsupported, "not played")
    }
    func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
      -> GetOutcome
    {
      throw StoreError(.unsupported, "not played")
    }
  }

  private func failures(objects: [ByteString], folders: [ByteString] = []) -> [StoreError.Kind?] {
    let store = ForeignStore(objects: objects, folders: folders)
    let listings = Listings(
      store: store, database: nil, options: ListingOptions(maxAge: .seconds(60)))
    // The first is listed for itself, the others may be parts of a walk.
    return (["d/", "d/e/", "d/f/"] as [ByteString]).map { prefix in
      failure { () throws(StoreError) in _ = try listings.current(folder(prefix), Call()) }
    }
  }

  @Test(arguments: ["x", "e/long", "D/1", ""] as [ByteString])
  func anObjectOutsideTheFolderMakesNoName(_ key: ByteString) {
    #expect(failures(objects: [key]) == [.server, .server, .server])
  }

  @Test(arguments: ["e/", "d/", "d/open", "/"] as [ByteString])
  func aFolderThatDoesNotLieBeneathMakesNoName(_ name: ByteString) {
    #expect(failures(objects: [], folders: [name]) == [.server, .server, .server])
  }
}
