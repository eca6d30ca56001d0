import BucketStore
import FileCache
import Platform
import TestSupport
import Testing

/// What is shown of a store's keys, and what is not.
@Suite struct ListingNameTests {
  private static let longName = ByteString([UInt8](repeating: 110, count: 300))
  private static let hidden: [ByteString] = [
    "/lead", "a//b", "x/../y", "x/./y", "x/con\u{1}trol", "x/del\u{7F}", "x/back\\slash", "both",
    longName, "x/" + longName, "x//deep/er",
  ]
  private static let shown: [ByteString] = [
    "plain", "both/in", "a/file", "x/y", "Docs/1", "docs/2", "per%2e%2ecent", "pl+us", "sem;i",
    "sp ace", "a.jpg", "a.jpg.json", "a.jpg (1)", "caf\u{E9}", "cafe\u{301}", "quest?ion#",
  ]

  @Test func awkwardKeysAreCountedAndNeverShownUnderAnotherName() throws {
    let fixture = try ListingFixture()
    fixture.fill(Self.hidden + Self.shown)
    try check(fixture)
  }

  @Test func aWalkHidesTheSameKeys() throws {
    let fixture = try ListingFixture()
    fixture.fill(Self.hidden + Self.shown)
    fixture.store.put("b", "w/1/x", [])
    fixture.store.put("b", "w/2/x", [])
    _ = try fixture.names()
    for prefix: ByteString in ["a/", "Docs/", "x/"] { _ = try fixture.names(prefix) }
    #expect(fixture.requests.contains { !$0.delimited && $0.key == "" })
    try check(fixture, alsoShown: ["w"])
  }

  private func check(_ fixture: ListingFixture, alsoShown: [ByteString] = []) throws {
    let root: [ByteString] = [
      "Docs", "a", "a.jpg", "a.jpg (1)", "a.jpg.json", "both", "cafe\u{301}", "caf\u{E9}", "docs",
      "per%2e%2ecent", "pl+us", "plain", "quest?ion#", "sem;i", "sp ace", "x",
    ]
    #expect(try fixture.names() == (root + alsoShown).sorted())
    #expect(try fixture.names("a/") == ["file"])
    #expect(try fixture.names("both/") == ["in"])
    #expect(try fixture.names("x/") == ["y"])
    #expect(try fixture.names("Docs/") == ["1"])
    #expect(try fixture.names("docs/") == ["2"])
    #expect(
      try fixture.listings.current(folder(""), Call()).listing.entry("both")?.isFolder == true)
    let hidden = fixture.listings.hiddenKeys(limit: 100)
    #expect(hidden.map(\.key) == Self.hidden.sorted())
    #expect(fixture.listings.hiddenKeyCount == Self.hidden.count)
    #expect(fixture.listings.hiddenKeys(limit: 2).count == 2)
  }

  @Test func withoutFlatListingsAHiddenFolderStandsForItsKeys() throws {
    let fixture = try ListingFixture()
    fixture.store.capabilities.flatListing = false
    fixture.fill(["a//b", "a//c", "a/d"])
    #expect(try fixture.names("a/") == ["d"])
    #expect(fixture.listings.hiddenKeys(limit: 9).map(\.key) == ["a//"])
  }

  @Test func theMarkOfAnEmptyFolderIsHiddenAndProvesIt() throws {
    let fixture = try ListingFixture()
    fixture.store.put("b", "empty/.emptyFolderPlaceholder", [])
    fixture.store.put("b", "marked/", [])
    fixture.store.put("b", "full/.emptyFolderPlaceholder", [1])
    #expect(try fixture.names() == ["empty", "full", "marked"])
    #expect(try fixture.names("empty/") == [])
    #expect(try fixture.names("marked/") == [])
    #expect(try fixture.names("full/") == [".emptyFolderPlaceholder"])
    #expect(fixture.listings.hiddenKeyCount == 0)
    #expect(failure { () throws(StoreError) in _ = try fixture.names("none/") } == .notFound)
  }

  @Test func encodedNamesAreShownDecoded() throws {
    let fixture = try ListingFixture { $0.names = KeyNames(.encode) }
    fixture.fill(["gr=C3=BCn/=F0=9F=98=80", "a=b", "=3DC3", "tab=09"])
    #expect(try fixture.names() == ["=C3", "a=b", "grün"])
    #expect(try fixture.names("gr=C3=BCn/") == ["😀"])
    #expect(fixture.listings.hiddenKeys(limit: 9).map(\.key) == ["tab=09"])
    try fixture.restart()
    #expect(try fixture.names() == ["=C3", "a=b", "grün"])
  }

  @Test func everyKeyIsListedWhateverThePageBorders() throws {
    let fixture = try ListingFixture(maxAge: .zero)
    fixture.fill(Self.hidden + Self.shown)
    let all = try fixture.names()
    for size in 1...12 {
      fixture.store.capabilities.pageSize = size
      fixture.listings.clear()
      #expect(try fixture.names() == all, "pages of \(size)")
    }
  }
}
