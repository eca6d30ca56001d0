import Platform
import StorageEmulator
import TestSupport
import Testing

/// The emulator as something that stands: its log, its restarts, its profiles.
@Suite struct StandingTests {
  @Test func theRequestLogShowsRawPathsHeadersAndByteCounts() throws {
    let stage = try Stage()
    _ = try stage.upload("a%20b+c%3Bd", "hello".bytes, headers: [("X-Client-Info", "t/1")])
    _ = try stage.get("a%20b+c%3Bd?cacheNonce=7")
    let entries = stage.emulator.requests.entries()
    #expect(entries.map(\.number) == [1, 2])
    #expect(entries[0].path == "/object/docs/a%20b+c%3Bd")
    #expect(entries[0].method == "POST")
    #expect(entries[0].route == "upload")
    #expect(entries[0].bucket == "docs")
    #expect(entries[0].key == "a b+c;d")
    #expect(entries[0].status == 200)
    #expect(entries[0].headers["X-Client-Info"] == "t/1")
    #expect(entries[0].bytesIn == 5)
    #expect(entries[1].path == "/object/authenticated/docs/a%20b+c%3Bd?cacheNonce=7")
    #expect(entries[1].bytesOut == 5)

    let shown = try stage.send("GET", "/_emulator/requests?since=1").json
    #expect(shown.items?.count == 1)
    #expect(shown.items?.first?["n"] == 2)
    #expect(shown.items?.first?["path"]?.text?.hasSuffix("?cacheNonce=7") ?? false)
    #expect(try stage.send("DELETE", "/_emulator/requests").status == 200)
    #expect(stage.emulator.requests.entries().isEmpty)
    _ = try stage.get("x")
    #expect(stage.emulator.requests.entries().map(\.number) == [3])
  }

  @Test func oneConnectionCarriesManyRequests() throws {
    let stage = try Stage()
    let one =
      "GET /status HTTP/1.1\r\nHost: x\r\n\r\n"
    let bytes = one.bytes + one.bytes + "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n".bytes
    let descriptor = try stage.client.connect(timeout: 10)
    let text = try stage.client.talk(descriptor, bytes)
    #expect(text.split(separator: "HTTP/1.1 200 OK").count == 3)
    #expect(text.hasSuffix("{\"healthy\":true}"))
  }

  @Test func everythingIsThereAfterARestartOnTheSameFolder() throws {
    let folder = try Scratch()
    let data = folder.path("data")
    let policies = [Policies.Policy(bucket: "docs", allow: [.select])]
    var refresh = ""
    var facts: ObjectFacts?
    var key = ""
    do {
      let stage = try Stage.withUsers(policies, data: data)
      stage.emulator.createBucket("open", isPublic: true, sizeLimit: 99, allowedTypes: ["a/b"])
      stage.emulator.createBucket("gone")
      stage.emulator.removeBucket("gone")
      _ = try stage.upload(
        "d/a", "hello".bytes, headers: [("x-metadata", Base64.encode("{\"m\":7}".bytes))])
      _ = try stage.upload("removed", "x".bytes)
      stage.emulator.remove("docs", "removed")
      try stage.emulator.put("docs", "big", [UInt8](repeating: 3, count: 3 << 20))
      refresh = try #require(try stage.signIn(Stage.ann, "a").json["refresh_token"]?.text)
      facts = stage.emulator.object("docs", "d/a")
      key = stage.emulator.serviceKey
    }
    let stage = try Stage.withUsers(policies, data: data)
    #expect(stage.emulator.serviceKey == key)
    #expect(stage.emulator.keys("docs") == ["big", "d/a"])
    let again = try #require(stage.emulator.object("docs", "d/a"))
    #expect(again.id == facts?.id)
    #expect(again.version == facts?.version)
    #expect(again.tag == facts?.tag)
    #expect(again.userMetadata == ["m": 7])
    #expect(again.createdAt == facts?.createdAt)
    #expect(try stage.get("d/a").text == "hello")
    #expect(try stage.get("big").body == [UInt8](repeating: 3, count: 3 << 20))
    #expect(try stage.refresh(refresh).status == 200)
    let bucket = try stage.send("GET", "/bucket/open", headers: stage.service).json
    #expect(bucket["public"] == true)
    #expect(bucket["file_size_limit"] == 99)
    #expect(bucket["allowed_mime_types"] == ["a/b"])
    #expect(try stage.send("GET", "/bucket/gone", headers: stage.service).status == 400)
  }

  @Test func aTornLineOfTheJournalIsPassedOver() throws {
    let folder = try Scratch()
    let data = folder.path("data")
    do {
      let stage = try Stage(Configuration(data: data))
      _ = try stage.upload("a", "1".bytes)
      _ = try stage.upload("b", "2".bytes)
    }
    let journal = try File.contents(of: data + "/journal")
    try File.replace(data + "/journal", with: Array(journal.dropLast(20)))
    let stage = try Stage(Configuration(data: data))
    #expect(stage.emulator.keys("docs") == ["a"])
    #expect(try stage.get("a").text == "1")
  }

  @Test func aStoppedServerRefusesConnectionsAndComesBackOnItsPort() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "x".bytes)
    stage.emulator.stop()
    #expect(throws: Errno(111)) { try stage.get("a") }
    try stage.emulator.start(port: stage.client.port)
    #expect(try stage.get("a").text == "x")
  }

  @Test func aFolderIsImportedWithItsSubFoldersAsBuckets() throws {
    let folder = try Scratch()
    try folder.file("photos/2024/a b.jpg", "jpeg".bytes)
    try folder.file("photos/~refused", "x".bytes)
    try folder.file("loose.txt", "x".bytes)
    let stage = try Stage()
    let imported = try stage.emulator.importFolder(folder.path)
    #expect(imported.objects == 1)
    #expect(imported.refused == [folder.path("photos/~refused")])
    #expect(stage.emulator.object("photos", "2024/a b.jpg")?.contentType == "image/jpeg")
    #expect(try stage.emulator.importFolder(folder.path).objects == 0)
  }

  @Test func anOldServerHidesCodesAndLacksTheNewerRoutes() throws {
    let stage = try Stage(Configuration(profile: .old))
    try stage.emulator.put("docs", "a", "x".bytes)
    let missing = try stage.get("b")
    #expect(missing.json["code"] == nil)
    #expect(missing.refusal == "400 404 not_found -")
    #expect(try stage.info("a").refusal == "404 404 Not Found -")
    let list = try stage.post("/object/list-v2/docs", [:])
    #expect(list.refusal == "404 404 Not Found -")
    #expect(list.message == "Route POST:/object/list-v2/docs not found")
    #expect(try stage.post("/object/list/docs", ["prefix": ""]).json.items?.count == 1)
    #expect(try stage.get("a").text == "x")
  }

  @Test func unknownRoutesAreARealNotFound() throws {
    let stage = try Stage()
    for path in ["/x", "/render/image/authenticated/docs/a", "/storage/v1/upload/resumable"] {
      let answer = try stage.send("GET", path, headers: stage.service)
      #expect(answer.refusal == "404 404 Not Found InvalidRequest")
    }
  }

  @Test func bodiesOfTheWrongShapeAreRefusedBeforeTheToken() throws {
    let stage = try Stage()
    let answer = try stage.send(
      "POST", "/object/list/docs", headers: [("Authorization", "Bearer x")], body: "nonsense".bytes)
    #expect(answer.refusal == "400 400 Error InvalidRequest")
    let big = try stage.send(
      "POST", "/object/list/docs", headers: stage.service,
      body: [UInt8](repeating: 32, count: (1 << 20) + 1))
    #expect(big.refusal == "413 413 Payload too large EntityTooLarge")
  }

  @Test func theClockMovesTimestampsAndTokensOverHTTP() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "x".bytes)
    let moved = try stage.post("/_emulator/clock", ["advance_s": 3600], as: [])
    #expect(moved.status == 200)
    try stage.emulator.put("docs", "b", "x".bytes)
    let first = try #require(stage.emulator.object("docs", "a"))
    let second = try #require(stage.emulator.object("docs", "b"))
    #expect(!(second.createdAt.since(first.createdAt) < .seconds(3600)))
  }

  @Test func localTimestampsOfBlobsKeepTheirMilliseconds() throws {
    let stage = try Stage(Configuration(profile: .local))
    // One of several writes falls off a whole second.
    var sawMilliseconds = false
    for _ in 0..<20 where !sawMilliseconds {
      try stage.emulator.put("docs", "a", "x".bytes)
      let list = try stage.post("/object/list/docs", ["prefix": ""]).json
      let time = try #require(list.items?.first?["metadata"]?["lastModified"]?.text)
      #expect(time.hasSuffix("Z") && time.utf8.count == 24)
      sawMilliseconds = !time.hasSuffix(".000Z")
    }
    #expect(sawMilliseconds)
  }
}
