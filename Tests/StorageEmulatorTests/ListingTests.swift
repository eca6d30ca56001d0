import Platform
import StorageEmulator
import Testing

@Suite struct ListingTests {
  /// One page of list version 2.
  private func page(
    _ stage: Stage, _ body: JSON, as caller: [(String, String)]? = nil
  ) throws -> JSON {
    let answer = try stage.post("/object/list-v2/docs", body, as: caller)
    try #require(answer.status == 200)
    return answer.json
  }

  /// All names of a listing of version 2, page after page, and how many pages there were.
  private func walk(
    _ stage: Stage, prefix: String = "", limit: Int64, delimiter: Bool, order: String? = nil
  ) throws -> (names: [String], pages: Int) {
    var names: [String] = []
    var pages = 0
    var cursor: JSON?
    while true {
      var members: [JSON.Member] = [
        JSON.Member("prefix", .string(prefix)), JSON.Member("limit", .integer(limit)),
        JSON.Member("with_delimiter", .bool(delimiter)),
      ]
      if let cursor { members.append(JSON.Member("cursor", cursor)) }
      if let order {
        members.append(JSON.Member("sortBy", ["column": "name", "order": .string(order)]))
      }
      let page = try page(stage, .object(members))
      pages += 1
      for kind in ["objects", "folders"] {
        names += (page[kind]?.items ?? []).compactMap { $0["name"]?.text }
      }
      guard page["hasNext"] == true else { return (names, pages) }
      cursor = page["nextCursor"]
      try #require(pages < 10_000)
    }
  }

  /// `a` and 2,000 pairs of `n0000` and `n0000.json`: 4,001 names.
  private func pairs() -> [ByteString] {
    var keys: [ByteString] = ["a"]
    for number in 10_000..<12_000 {
      let name = "n" + String(number).dropFirst()
      keys += [ByteString(name), ByteString(name + ".json")]
    }
    return keys
  }

  /// `n0000` to `n0899`, and the extension of the 200th of them.
  private func extended(_ count: Int) -> [ByteString] {
    (0..<count).map { ByteString("n" + String(10_000 + $0).dropFirst()) }
  }

  @Test func anObjectOfVersion2CarriesItsFullKeyAndFolderObjectsHaveNoID() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "docs/a.txt", "hello".bytes, contentType: "text/plain")
    try stage.emulator.put("docs", "docs/sub/b.txt", [])
    let page = try page(stage, ["prefix": "docs/", "with_delimiter": true])
    #expect(page["hasNext"] == false)
    #expect(page["nextCursor"] == nil)
    let object = try #require(page["objects"]?.items?.first)
    #expect(object["name"] == "docs/a.txt")
    #expect(object["key"] == "a.txt")
    #expect(object["id"]?.text != nil)
    let metadata = try #require(object["metadata"])
    #expect(metadata["eTag"] == "\"5d41402abc4b2a76b9719d911017c592\"")
    #expect(metadata["size"] == 5)
    #expect(metadata["mimetype"] == "text/plain")
    #expect(metadata["cacheControl"] == "no-cache")
    #expect(metadata["contentLength"] == 5)
    #expect(metadata["httpStatusCode"] == 200)
    #expect(metadata["lastModified"]?.text?.hasSuffix(".000Z") ?? false)
    let folder = try #require(page["folders"]?.items?.first)
    #expect(folder["name"] == "docs/sub/")
    #expect(folder["key"] == "sub")
    #expect(folder["id"] == .null)
    #expect(folder["updated_at"] == .null)
    let flat = try self.page(stage, [:])
    #expect(flat["objects"]?.items?.first?["key"] == nil)
  }

  @Test func theCursorOfVersion2HoldsTheLastName() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["docs/a.txt", "docs/b.txt"], [])
    let page = try page(stage, ["limit": 1])
    #expect(page["nextCursor"] == "bDpkb2NzL2EudHh0")
    #expect(page["nextCursorKey"] == "docs/a.txt")
    let bad = try stage.post("/object/list-v2/docs", ["cursor": "eDp5"])
    #expect(bad.refusal == "400 400 InvalidParameter InvalidParameter")
    #expect(bad.message == "Invalid Parameter continuation token")
  }

  @Test func flatPagesOfVersion2AreExact() throws {
    let stage = try Stage()
    let keys = pairs()
    try stage.emulator.put("docs", keys: keys.reversed(), [])
    for limit: Int64 in [99, 1000, 5000] {
      let (names, pages) = try walk(stage, limit: limit, delimiter: false)
      #expect(names == keys.map(\.description))
      #expect(pages == (4001 + Int(min(limit, 1000)) - 1) / Int(min(limit, 1000)))
    }
  }

  @Test func pagesOfVersion2WithADelimiterLoseWhatGoesOnWithASignBelowTheSlash() throws {
    let stage = try Stage()
    let keys = pairs()
    try stage.emulator.put("docs", keys: keys, [])
    // What was measured on the real functions with as many names.
    #expect(try walk(stage, limit: 1000, delimiter: true).names.count == 4000)
    #expect(try walk(stage, limit: 99, delimiter: true).names.count == 3962)
    let fixed = try Stage(Configuration(listing: .fixed))
    try fixed.emulator.put("docs", keys: keys, [])
    #expect(try walk(fixed, limit: 99, delimiter: true).names == keys.map(\.description))
  }

  @Test func aFolderIsLostBehindAFileOfItsNameAtThePageBorder() throws {
    let keys: [ByteString] = ["a", "a b", "a.txt", "a/x", "b"]
    let stage = try Stage()
    try stage.emulator.put("docs", keys: keys, [])
    #expect(try walk(stage, limit: 1, delimiter: true).names == ["a", "b"])
    #expect(
      try walk(stage, limit: 10, delimiter: true).names == ["a", "a b", "a.txt", "b", "a/"])
    let fixed = try Stage(Configuration(listing: .fixed))
    try fixed.emulator.put("docs", keys: keys, [])
    #expect(
      try walk(fixed, limit: 1, delimiter: true).names == ["a", "a b", "a.txt", "a/", "b"])
  }

  @Test func anUnderscoreInTheLastNameStandsForAnyCharacter() throws {
    let stage = try Stage()
    // `x_y` is no folder, but `xay/` makes it pass for one: its neighbour `x_y/…` range is skipped.
    try stage.emulator.put("docs", keys: ["x_y", "x_y.txt", "xay/z"], [])
    let (names, _) = try walk(stage, limit: 1, delimiter: true)
    #expect(names == ["x_y", "xay/"])
    let page = try page(stage, ["limit": 2, "with_delimiter": true])
    #expect(page["objects"]?.items?.count == 2)
  }

  @Test func version2IsOrderedByBytesAndTellsCasesApart() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["docs/a", "Docs/b", "_", "Z", "a"], [])
    #expect(
      try walk(stage, limit: 1000, delimiter: false).names
        == ["Docs/b", "Z", "_", "a", "docs/a"])
    #expect(
      try walk(stage, limit: 2, delimiter: true, order: "desc").names
        == ["a", "docs/", "_", "Z", "Docs/"])
  }

  @Test func aDoubleSlashGivesTheFolderItself() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["a//b"], [])
    let page = try page(stage, ["prefix": "a/", "with_delimiter": true])
    #expect(page["folders"]?.items?.map { $0["name"] } == ["a/"])
  }

  @Test func thePrefixOfVersion2IsLiteralAndNeedsNoSlash() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["a_b", "axb", "a_bc/d"], [])
    #expect(try walk(stage, prefix: "a_", limit: 10, delimiter: true).names == ["a_b", "a_bc/"])
  }

  @Test func version2SortsByDate() throws {
    let stage = try Stage()
    for key in ["c", "a", "b"] {
      try stage.emulator.put("docs", ByteString(key), [])
      stage.emulator.advanceClock(seconds: 10)
    }
    let first = try page(
      stage, ["limit": 2, "sortBy": ["column": "created_at", "order": "desc"]])
    #expect(first["objects"]?.items?.compactMap { $0["name"]?.text } == ["b", "a"])
    let cursor = try #require(first["nextCursor"])
    let second = try page(stage, ["limit": 2, "cursor": cursor])
    #expect(second["objects"]?.items?.compactMap { $0["name"]?.text } == ["c"])
  }

  @Test func aMissingBucketListsAsEmpty() throws {
    let stage = try Stage()
    let second = try stage.post("/object/list-v2/nowhere", [:])
    #expect(second.status == 200)
    #expect(second.json["objects"] == [])
    let first = try stage.post("/object/list/nowhere", ["prefix": ""])
    #expect(first.status == 200)
    #expect(first.json == [])
  }

  /// Names that lie close together around each other's slashes: what listings lose.
  private func awkward() -> [ByteString] {
    let parts = ["a", "a b", "a.x", "a_b", "axb", "a!", "a-", "a0", "b", "B"]
    var keys: Set<ByteString> = []
    for first in parts {
      keys.insert(ByteString(first))
      for second in parts { keys.insert(ByteString(first + "/" + second)) }
      keys.insert(ByteString(first + ".json"))
    }
    return keys.sorted()
  }

  @Test func aFlatLookBehindTheLastObjectOfAPageMakesTheListingComplete() throws {
    let stage = try Stage()
    let keys = awkward()
    try stage.emulator.put("docs", keys: keys, [])
    var wanted: Set<String> = []
    for key in keys {
      let parts = key.split(at: ByteString.slash)
      wanted.insert(parts[0].description + (parts.count > 1 ? "/" : ""))
    }
    #expect(wanted.count > 25)
    for limit: Int64 in 1...30 {
      var found: Set<String> = []
      var cursor: JSON = .null
      repeat {
        let page = try page(
          stage, ["limit": .integer(limit), "with_delimiter": true, "cursor": cursor])
        for kind in ["objects", "folders"] {
          found.formUnion((page[kind]?.items ?? []).compactMap { $0["name"]?.text })
        }
        cursor = page["nextCursor"] ?? .null
        guard let last = page["nextCursorKey"]?.text, cursor != .null,
          !found.contains(last + "/") || found.contains(last)
        else { continue }
        // What lies between the last object and its own folder belongs to the listing.
        let flat = try self.page(stage, ["prefix": .string(last)])
        for name in (flat["objects"]?.items ?? []).compactMap({ $0["name"]?.text }) {
          let rest = name.dropFirst(last.count)
          guard let slash = rest.firstIndex(of: "/") else {
            found.insert(name)
            continue
          }
          found.insert(String(name[...slash]))
          if slash == rest.startIndex { break }
        }
      } while cursor != .null
      #expect(found == wanted, "limit \(limit)")
    }
  }

  // MARK: version 1

  private func list(_ stage: Stage, _ body: JSON) throws -> [JSON] {
    let answer = try stage.post("/object/list/docs", body)
    try #require(answer.status == 200)
    return answer.json.items ?? []
  }

  private func names(_ items: [JSON]) -> [String] { items.compactMap { $0["name"]?.text } }

  private func walk1(_ stage: Stage, prefix: String = "", limit: Int64) throws -> [String] {
    var all: [String] = []
    while true {
      let page = names(
        try list(
          stage,
          [
            "prefix": .string(prefix), "limit": .integer(limit),
            "offset": .integer(Int64(all.count)),
          ]))
      if page.isEmpty { return all }
      all += page
    }
  }

  @Test func version1GivesNamesRelativeToThePrefixAndFoldersOfNulls() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["d/a.txt", "d/sub/b.txt", "dx"], "hello".bytes)
    let items = try list(stage, ["prefix": "d"])
    #expect(names(items) == ["a.txt", "sub"])
    #expect(items[0]["metadata"]?["size"] == 5)
    #expect(items[1]["id"] == .null)
    #expect(items[1]["metadata"] == .null)
    #expect(items[1]["created_at"] == .null)
  }

  @Test func version1GivesAHundredByDefaultAndNeverMoreThan1500() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: extended(2000), [])
    #expect(try list(stage, ["prefix": ""]).count == 100)
    #expect(try list(stage, ["prefix": "", "limit": 5000]).count == 1500)
    let answer = try stage.post("/object/list/docs", ["limit": 1])
    #expect(answer.refusal == "400 400 Error InvalidRequest")
    #expect(answer.message == "body must have required property 'prefix'")
  }

  @Test func version1LosesWhatExtendsTheLastNameOfABatch() throws {
    let stage = try Stage()
    // Batches of twice the limit, counted from the folder's start: the 200th name ends one.
    try stage.emulator.put("docs", keys: extended(900) + ["n0199.json"], [])
    #expect(try walk1(stage, limit: 100).count == 900)
    let fixed = try Stage(Configuration(listing: .fixed))
    try fixed.emulator.put("docs", keys: extended(900) + ["n0199.json"], [])
    #expect(try walk1(fixed, limit: 100).count == 901)
    let big = try Stage()
    try big.emulator.put("docs", keys: extended(4000) + ["n1999 (1)"], [])
    #expect(try walk1(big, limit: 1000).count == 4000)
    #expect(try walk1(big, limit: 1500).count == 4000)
  }

  @Test func version1MergesFoldersThatDifferOnlyByCase() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["docs/b", "Docs/a", "DOCS/c", "X", "w"], [])
    #expect(names(try list(stage, ["prefix": ""])) == ["Docs", "w", "X"])
    #expect(names(try list(stage, ["prefix": "docs"])) == ["a", "b", "c"])
  }

  @Test func version1SearchIsALiteralStartOfTheName() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["d/a_b", "d/axb", "d/A_c", "d/ba_"], [])
    #expect(names(try list(stage, ["prefix": "d", "search": "a_"])) == ["a_b", "A_c"])
  }

  @Test func version1ShowsEmptySegments() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["a//b", "/lead", "dir/"], [])
    #expect(names(try list(stage, ["prefix": ""])) == ["", "a", "dir"])
    #expect(names(try list(stage, ["prefix": "a"])) == [""])
    let inside = try list(stage, ["prefix": "dir"])
    #expect(names(inside) == [""])
    #expect(inside[0]["id"]?.text != nil)
  }

  @Test func version1SortsByDateWithFoldersFirst() throws {
    let stage = try Stage()
    for key in ["c", "a", "sub/x"] {
      try stage.emulator.put("docs", ByteString(key), [])
      stage.emulator.advanceClock(seconds: 10)
    }
    let items = try list(
      stage, ["prefix": "", "sortBy": ["column": "created_at", "order": "asc"]])
    #expect(names(items) == ["sub", "c", "a"])
    let down = try list(
      stage, ["prefix": "", "sortBy": ["column": "name", "order": "desc"]])
    #expect(names(down) == ["sub", "c", "a"])
  }

  @Test func aHundredThousandObjectsListCompletelyAfterSeedingInOneCall() throws {
    let stage = try Stage()
    let keys = (100_000..<200_000).map { ByteString("big/n\($0)") }
    try stage.emulator.put("docs", keys: keys, "x".bytes)
    var count = 0
    var cursor: JSON = .null
    repeat {
      let page = try page(stage, ["prefix": "big/", "with_delimiter": true, "cursor": cursor])
      count += page["objects"]?.items?.count ?? 0
      cursor = page["nextCursor"] ?? .null
    } while cursor != .null
    #expect(count == 100_000)
  }
}
