import Platform
import StorageEmulator
import Testing

@Suite struct ReadingTests {
  @Test func aDownloadCarriesTheHeadersOfTheStoredObject() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a/b.txt", "hello".bytes, contentType: "text/plain")
    let answer = try stage.get("a/b.txt")
    #expect(answer.status == 200)
    #expect(answer.text == "hello")
    #expect(answer.headers["ETag"] == "\"5d41402abc4b2a76b9719d911017c592\"")
    #expect(answer.headers["Content-Type"] == "text/plain")
    #expect(answer.headers["Content-Length"] == "5")
    #expect(answer.headers["Cache-Control"] == "no-cache")
    #expect(answer.headers["Accept-Ranges"] == "bytes")
    #expect(answer.headers["X-Robots-Tag"] == "none")
    let modified = try #require(answer.headers["Last-Modified"])
    #expect(modified.hasSuffix(" GMT") && modified.utf8.count == 29)
  }

  @Test func htmlIsServedAsPlainText() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "p.html", "<p>".bytes, contentType: "text/html; charset=utf-8")
    #expect(try stage.get("p.html").headers["Content-Type"] == "text/plain")
  }

  @Test func headTellsTheSizeAndIgnoresRangesAndConditions() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "hello".bytes)
    let tag = try #require(stage.emulator.object("docs", "a")?.tag)
    let answer = try stage.get(
      "a", [("Range", "bytes=1-2"), ("If-None-Match", tag)], method: "HEAD")
    #expect(answer.status == 200)
    #expect(answer.headers["Content-Length"] == "5")
    #expect(answer.body.isEmpty)
  }

  @Test(arguments: ["missing", "%23bad"]) func aFailedHeadSaysOnly400(_ path: String) throws {
    let stage = try Stage()
    let answer = try stage.get(path, method: "HEAD")
    #expect(answer.status == 400)
    #expect(answer.body.isEmpty)
  }

  @Test func oneRangeIsAnsweredWith206() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "0123456789".bytes)
    for (range, text, place) in [
      ("bytes=2-4", "234", "bytes 2-4/10"), ("bytes=7-", "789", "bytes 7-9/10"),
      ("bytes=-3", "789", "bytes 7-9/10"), ("bytes=8-100", "89", "bytes 8-9/10"),
    ] {
      let answer = try stage.get("a", [("Range", range)])
      #expect(answer.status == 206)
      #expect(answer.text == text)
      #expect(answer.headers["Content-Range"] == place)
      #expect(answer.headers["Content-Length"] == String(text.utf8.count))
    }
  }

  @Test func aRangeBehindTheEndIs500OnTheHostedServerAnd416OnTheLocalOne() throws {
    for (profile, wanted) in [
      (Configuration.Profile.hosted, "500 500 Internal InternalError"),
      (.local, "416 416 invalid_range InvalidRange"),
    ] {
      let stage = try Stage(Configuration(profile: profile))
      try stage.emulator.put("docs", "a", "hello".bytes)
      try stage.emulator.put("docs", "empty", [])
      #expect(try stage.get("a", [("Range", "bytes=5-")]).refusal == wanted)
      #expect(try stage.get("empty", [("Range", "bytes=0-")]).refusal == wanted)
    }
  }

  @Test func severalRangesGiveTheWholeObjectWhenHostedAnd416Locally() throws {
    let hosted = try Stage()
    try hosted.emulator.put("docs", "a", "hello".bytes)
    let answer = try hosted.get("a", [("Range", "bytes=0-1,3-4")])
    #expect(answer.status == 200)
    #expect(answer.text == "hello")
    let local = try Stage(Configuration(profile: .local))
    try local.emulator.put("docs", "a", "hello".bytes)
    #expect(try local.get("a", [("Range", "bytes=0-1,3-4")]).status == 416)
  }

  @Test func aCurrentCopyGetsABare304WhenHostedAndAFullOneLocally() throws {
    let hosted = try Stage()
    try hosted.emulator.put("docs", "a", "hello".bytes)
    let tag = try #require(hosted.emulator.object("docs", "a")?.tag)
    let bare = try hosted.get("a", [("If-None-Match", tag)])
    #expect(bare.status == 304)
    #expect(bare.body.isEmpty)
    for name in ["ETag", "Last-Modified", "Cache-Control", "Content-Length"] {
      #expect(bare.headers[name] == nil)
    }
    let local = try Stage(Configuration(profile: .local))
    try local.emulator.put("docs", "a", "hello".bytes)
    let full = try local.get("a", [("If-None-Match", tag)])
    #expect(full.status == 304)
    #expect(full.headers["ETag"] == tag)
    #expect(full.headers["Content-Length"] == "0")
    #expect(full.headers["Last-Modified"] != nil)
    #expect(full.headers["Cache-Control"] == "no-cache")
  }

  @Test func onlyTheHostedServerKnowsListsAndWeakTags() throws {
    for (profile, status) in [(Configuration.Profile.hosted, 304), (.local, 200)] {
      let stage = try Stage(Configuration(profile: profile))
      try stage.emulator.put("docs", "a", "hello".bytes)
      let tag = try #require(stage.emulator.object("docs", "a")?.tag)
      #expect(try stage.get("a", [("If-None-Match", "W/" + tag)]).status == status)
      #expect(try stage.get("a", [("If-None-Match", "\"x\", " + tag)]).status == status)
      #expect(try stage.get("a", [("If-None-Match", "*")]).status == status)
    }
  }

  @Test func anOtherTagGetsTheBytesAndMayBeServedStale() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "hello".bytes)
    let answer = try stage.get("a", [("If-None-Match", "\"other\"")])
    #expect(answer.status == 200)
    #expect(answer.headers["Cache-Control"] == "no-cache, stale-while-revalidate=30")
  }

  @Test func ifRangeIsIgnored() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "hello".bytes)
    let answer = try stage.get("a", [("Range", "bytes=0-0"), ("If-Range", "\"other\"")])
    #expect(answer.status == 206)
  }

  @Test func downloadNamesTheFile() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "hello".bytes)
    #expect(try stage.get("a?download").headers["Content-Disposition"] == "attachment;")
    #expect(
      try stage.get("a?download=b%20c.txt").headers["Content-Disposition"]
        == "attachment; filename=b%20c.txt; filename*=UTF-8''b%20c.txt")
  }

  @Test func infoShowsUserMetadataAndTheVersion() throws {
    let stage = try Stage()
    try stage.emulator.put(
      "docs", "a/b", "hello".bytes, contentType: "text/plain", userMetadata: ["mtime": "7"])
    let facts = try #require(stage.emulator.object("docs", "a/b"))
    let answer = try stage.info("a/b")
    #expect(answer.status == 200)
    let json = answer.json
    #expect(json["id"] == .string(facts.id))
    #expect(json["version"] == .string(facts.version))
    #expect(json["name"] == "a/b")
    #expect(json["bucket_id"] == "docs")
    #expect(json["size"] == 5)
    #expect(json["content_type"] == "text/plain")
    #expect(json["cache_control"] == "no-cache")
    #expect(json["etag"] == .string(facts.tag))
    #expect(json["metadata"] == ["mtime": "7"])
    #expect(json["last_modified"]?.text?.hasSuffix("Z") ?? false)
    #expect(json["created_at"]?.text?.utf8.count == 24)
    #expect(json["updated_at"] == nil)
    #expect(answer.headers["ETag"] == facts.tag)
  }

  @Test func bigObjectsCarryPartTagsOnTheHostedServerOnly() throws {
    let bytes = [UInt8](repeating: 7, count: (16 << 20) + 1)
    let hosted = try Stage()
    try hosted.emulator.put("docs", "big", bytes)
    let tag = try #require(hosted.emulator.object("docs", "big")?.tag)
    #expect(tag.hasSuffix("-2\""))
    let local = try Stage(Configuration(profile: .local))
    try local.emulator.put("docs", "big", bytes)
    #expect(local.emulator.object("docs", "big")?.tag == "\"\(Digest.hex(.md5, of: bytes))\"")
    let answer = try hosted.get("big", [("Range", "bytes=16777210-")])
    #expect(answer.body == [UInt8](repeating: 7, count: 7))
  }
}
