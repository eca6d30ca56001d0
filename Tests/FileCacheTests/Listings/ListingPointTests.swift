import BucketStore
import FileCache
import Platform
import TestSupport
import Testing

/// Folders that are too long to be listed for the sake of one name.
@Suite struct ListingPointTests {
  private let fixture: ListingFixture

  init() throws {
    fixture = try ListingFixture()
    fixture.store.capabilities.pageSize = 10
    for file in 0..<100 { fixture.store.put("b", ByteString("file\(file)"), [1]) }
    fixture.store.put("b", "dir/x", [1])
  }

  private func find(_ name: ByteString) throws(StoreError) -> ListingEntry? {
    try fixture.listings.find(name, in: folder(""), Call()).entry
  }

  @Test func aLongFolderThatIsNotKnownIsGivenUpAfterFourPages() throws {
    #expect(try find("file5")?.size == 1)
    // And one for the folder that might hide it.
    #expect(fixture.requests.count == 5)
    #expect(try find("dir")?.isFolder == true)
    #expect(try find("none") == nil)
    #expect(fixture.requests.count == 7)
    #expect(fixture.store.requests.filter { $0.route == .info }.count == 3)
  }

  @Test func oneStatInALongFolderAsksForOneObject() throws {
    #expect(try fixture.names().count == 101)
    fixture.listings.distrust()
    fixture.store.forgetRequests()
    fixture.store.put("b", "file7", [1, 2, 3])
    #expect(try find("file7")?.size == 3)
    #expect(try find("file7")?.size == 3)
    #expect(fixture.store.requests.map(\.route) == [.info])
    #expect(fixture.listings.kept(folder(""))?.entry("file7")?.size == 3)
    try fixture.restart()
    #expect(fixture.listings.kept(folder(""))?.entry("file7")?.size == 3)
  }

  @Test func manyStatsInALongFolderListItOnce() throws {
    _ = try fixture.names()
    fixture.listings.distrust()
    fixture.store.forgetRequests()
    for file in 0..<60 { #expect(try find(ByteString("file\(file)")) != nil) }
    let infos = fixture.store.requests.filter { $0.route == .info }.count
    #expect(infos == 16)
    #expect(fixture.requests.count == 11)
  }

  @Test func whatIsGoneOrNewIsSeen() throws {
    _ = try fixture.names()
    fixture.listings.distrust()
    fixture.store.remove("b", "file1")
    fixture.store.remove("b", "dir/x")
    fixture.store.put("b", "new", [1, 2])
    fixture.store.put("b", "file2/turned/folder", [1])
    fixture.store.remove("b", "file2")
    #expect(try find("file1") == nil)
    #expect(try find("dir") == nil)
    #expect(try find("new")?.size == 2)
    #expect(try find("file2")?.isFolder == true)
    let kept = try #require(fixture.listings.kept(folder("")))
    #expect(kept.entry("file1") == nil && kept.entry("dir") == nil)
    #expect(kept.entry("file2")?.isFolder == true && kept.entry("new")?.size == 2)
  }

  @Test func withNoNetworkTheKeptListingAnswers() throws {
    _ = try fixture.names()
    fixture.listings.distrust()
    fixture.store.outage = StoreError(.offline, "offline")
    #expect(try find("file1")?.size == 1)
    #expect(try find("none") == nil)
    fixture.store.outage = nil
    fixture.store.session = .restoring
    fixture.store.remove("b", "file1")
    fixture.listings.distrust()
    #expect(try find("file1")?.size == 1)
  }
}
