import Platform
import StorageEmulator
import Testing

/// Uploads in parts as the server takes them, and refuses them.
@Suite struct ResumableTests {
  private static let version = [("Tus-Resumable", "1.0.0")]
  private static let upsert = [("x-upsert", "true")]

  private func begin(
    _ stage: Stage, _ key: String, _ length: Int?, _ headers: [(String, String)] = upsert,
    extra: [(String, [UInt8])] = [], as caller: [(String, String)]? = nil, body: [UInt8]? = nil
  ) throws -> RawClient.Answer {
    let pairs = [("bucketName", "docs".bytes), ("objectName", key.bytes)] + extra
    let metadata = pairs.map { "\($0.0) \(Base64.encode($0.1))" }.joined(separator: ",")
    let size = length.map { ("Upload-Length", String($0)) } ?? ("Upload-Defer-Length", "1")
    return try stage.send(
      "POST", "/upload/resumable",
      headers: (caller ?? stage.service) + Self.version + headers
        + [size, ("Upload-Metadata", metadata)], body: body ?? [])
  }

  private func path(_ answer: RawClient.Answer) throws -> String {
    let location = try #require(answer.headers["Location"])
    return "/upload/resumable/" + (location.split(separator: "/").last ?? "")
  }

  private func patch(
    _ stage: Stage, _ path: String, _ offset: Int, _ bytes: [UInt8],
    _ headers: [(String, String)] = upsert, as caller: [(String, String)]? = nil
  ) throws -> RawClient.Answer {
    try stage.send(
      "PATCH", path,
      headers: (caller ?? stage.service) + Self.version + headers
        + [
          ("Upload-Offset", String(offset)), ("Content-Type", "application/offset+octet-stream"),
        ], body: bytes)
  }

  private func ask(_ stage: Stage, _ method: String, _ path: String) throws -> RawClient.Answer {
    try stage.send(method, path, headers: stage.service + Self.version + Self.upsert)
  }

  @Test func anUploadIsOpenedFilledAndFinished() throws {
    let stage = try Stage()
    let opened = try begin(
      stage, "a/b", 6,
      extra: [
        ("contentType", "text/plain".bytes), ("cacheControl", "60".bytes),
        ("metadata", "{\"mtime\":\"7\"}".bytes),
      ])
    #expect(opened.status == 201)
    #expect(opened.headers["Upload-Expires"] != nil)
    #expect(opened.headers["Location"]?.hasPrefix("https://127.0.0.1/storage/v1/") == true)
    let path = try path(opened)
    let first = try patch(stage, path, 0, "hel".bytes)
    #expect(first.status == 204 && first.headers["Upload-Offset"] == "3")
    #expect(first.headers["Tus-Complete"] == nil)
    #expect(stage.emulator.object("docs", "a/b") == nil)
    let told = try ask(stage, "HEAD", path)
    #expect(told.status == 200 && told.headers["Upload-Offset"] == "3")
    #expect(told.headers["Upload-Length"] == "6")
    let last = try patch(stage, path, 3, "lo!".bytes)
    #expect(last.status == 204 && last.headers["Tus-Complete"] == "1")
    #expect(try stage.emulator.bytes("docs", "a/b") == "hello!".bytes)
    let facts = try #require(stage.emulator.object("docs", "a/b"))
    #expect(facts.contentType == "text/plain" && facts.cacheControl == "max-age=60")
    #expect(facts.userMetadata == ["mtime": "7"])
    #expect(try ask(stage, "DELETE", path).text == "Cannot terminate an already completed upload")
  }

  @Test func bytesMayComeWithTheOpeningAndTheLengthLater() throws {
    let stage = try Stage()
    let opened = try begin(
      stage, "a", nil,
      Self.upsert + [("Content-Type", "application/offset+octet-stream")], body: "ab".bytes)
    #expect(opened.status == 201 && opened.headers["Upload-Offset"] == "2")
    let path = try path(opened)
    #expect(try ask(stage, "HEAD", path).headers["Upload-Defer-Length"] == "1")
    let last = try patch(stage, path, 2, "c".bytes, Self.upsert + [("Upload-Length", "3")])
    #expect(last.headers["Tus-Complete"] == "1")
    #expect(try stage.emulator.bytes("docs", "a") == "abc".bytes)
  }

  @Test func refusalsAreHonestStatusesWithText() throws {
    let stage = try Stage()
    stage.emulator.createBucket("docs2")
    let path = try path(try begin(stage, "a", 6))
    func line(_ answer: RawClient.Answer) -> String { "\(answer.status) \(answer.text)" }
    #expect(line(try patch(stage, path, 2, "x".bytes)) == "409 Upload-Offset conflict\n")
    #expect(
      line(try patch(stage, path, 0, "1234567".bytes)) == "413 upload's size exceeded\n")
    #expect(
      line(try patch(stage, "/upload/resumable/bm8vbm8vbm8", 0, [])) == "404 Bucket not found")
    let unknown = Base64.encodeURL("docs/a/none".bytes)
    #expect(
      line(try patch(stage, "/upload/resumable/" + unknown, 0, []))
        == "404 The file for this url was not found\n")
    #expect(line(try begin(stage, "ü", 6)) == "400 Invalid key: ü")
    #expect(
      line(try stage.send("HEAD", path, headers: stage.service)) == "412 ")
    #expect(
      try stage.send("PATCH", path, headers: Self.version).refusal.hasPrefix(
        "400 403 Unauthorized"))
    stage.emulator.advanceClock(seconds: 3601)
    #expect(try ask(stage, "HEAD", path).status == 410)
  }

  @Test func thePermissionIsTestedAtEachRequestWithItsOwnUpsert() throws {
    let stage = try Stage.withUsers([
      Policies.Policy(bucket: "docs", prefix: "own/", allow: [.select, .insert, .update])
    ])
    let ann = try stage.user(Stage.ann)
    #expect(try begin(stage, "other/a", 3, as: ann).status == 403)
    try stage.emulator.put("docs", "own/a", "old".bytes)
    #expect(try begin(stage, "own/a", 3, [], as: ann).text == "The resource already exists")
    let path = try path(try begin(stage, "own/a", 3, as: ann))
    let bare = try patch(stage, path, 0, "new".bytes, [], as: ann)
    #expect(bare.status == 409 && bare.text == "The resource already exists")
    #expect(try patch(stage, path, 0, "new".bytes, as: ann).status == 204)
    #expect(try stage.emulator.bytes("docs", "own/a") == "new".bytes)
  }

  @Test func anOverwriteWithoutMetadataKeepsTheOld() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "old".bytes, userMetadata: ["mtime": "7"])
    let path = try path(try begin(stage, "a", 3))
    _ = try patch(stage, path, 0, "new".bytes)
    #expect(stage.emulator.object("docs", "a")?.userMetadata == ["mtime": "7"])
  }

  @Test func aPartThatBreaksOffKeepsWhatCame() throws {
    let stage = try Stage()
    let path = try path(try begin(stage, "a", 10))
    stage.emulator.setFault(
      Fault(method: "PATCH", route: "tus", times: 1, effect: .cutRequest(after: 4)))
    #expect(
      try stage.client.send("PATCH", path, headers: partHeaders(stage), body: "0123456789".bytes)
        == nil)
    #expect(try ask(stage, "HEAD", path).headers["Upload-Offset"] == "4")
    #expect(try patch(stage, path, 4, "456789".bytes).status == 204)
    #expect(try stage.emulator.bytes("docs", "a") == "0123456789".bytes)
  }

  @Test func aFailedEndThrowsTheBytesAwayAndTellsOfThemStill() throws {
    let stage = try Stage()
    let path = try path(try begin(stage, "a", 3))
    stage.emulator.setFault(Fault(route: "tus", times: 1, effect: .failCommit("LockTimeout")))
    let failed = try patch(stage, path, 0, "abc".bytes)
    #expect(failed.status == 503 && failed.text == "acquiring lock timeout")
    #expect(try ask(stage, "HEAD", path).headers["Upload-Offset"] == "3")
    #expect(stage.emulator.object("docs", "a") == nil)
  }

  @Test func aNewcomerStopsTheRequestAtWork() throws {
    let stage = try Stage()
    let path = try path(try begin(stage, "a", 6))
    let descriptor = try stage.client.connect(timeout: 10)
    var head = "PATCH \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n"
    for (name, value) in partHeaders(stage) { head += "\(name): \(value)\r\n" }
    let isOver = Locked(false)
    let stalled = try Thread(name: "stalled") { [client = stage.client, head] in
      do {
        let text = try client.talk(descriptor, (head + "\r\nabc").bytes)
        #expect(text.hasPrefix("HTTP/1.1 400 "))
        #expect(text.hasSuffix("Request aborted due to lock acquired"))
      } catch {
        Issue.record("\(error)")
      }
      isOver.withLock { $0 = true }
    }
    // The first of these may come before the part has begun.
    while !isOver.withLock({ $0 }) { #expect(try ask(stage, "HEAD", path).status == 200) }
    stalled.join()
    #expect(try ask(stage, "HEAD", path).headers["Upload-Offset"] == "3")
  }

  @Test func theEdgeHandsOutWhatItHasUntilItsTimeIsOver() throws {
    let stage = try Stage()
    stage.emulator.setStaleness(.seconds(60))
    try stage.emulator.put("docs", "a", "old".bytes)
    #expect(try stage.get("a").text == "old")
    try stage.emulator.put("docs", "a", "new".bytes)
    let stale = try stage.get("a")
    #expect(stale.text == "old")
    #expect(stale.headers["ETag"] != stage.emulator.object("docs", "a")?.tag)
    #expect(try stage.get("a?cacheNonce=1").text == "new")
    #expect(try stage.info("a").json["etag"]?.text == stage.emulator.object("docs", "a")?.tag)
    stage.emulator.remove("docs", "a")
    #expect(try stage.get("a").status == 200)
    stage.emulator.advanceClock(seconds: 61)
    #expect(try stage.get("a").status == 400)
  }

  private func partHeaders(_ stage: Stage) -> [(String, String)] {
    stage.service + Self.version + Self.upsert
      + [("Upload-Offset", "0"), ("Content-Type", "application/offset+octet-stream")]
  }
}
