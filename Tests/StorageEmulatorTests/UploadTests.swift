import Platform
import StorageEmulator
import Testing

@Suite struct UploadTests {
  @Test func anUploadAnswersKeyAndIDAlone() throws {
    let stage = try Stage()
    let answer = try stage.upload("notes/a%20b.txt", "hello".bytes)
    #expect(answer.status == 200)
    let id = try #require(stage.emulator.object("docs", "notes/a b.txt")?.id)
    #expect(answer.text == "{\"Key\":\"docs/notes/a b.txt\",\"Id\":\"\(id)\"}")
  }

  @Test func typeCacheControlAndMetadataAreStoredAsSent() throws {
    let stage = try Stage()
    let metadata = Base64.encode("{\"mtime\":\"7\"}".bytes)
    _ = try stage.upload(
      "a", "x".bytes,
      headers: [
        ("Content-Type", "text/plain; charset=UTF-8"), ("Cache-Control", "max-age=5"),
        ("x-metadata", metadata), ("x-robots-tag", "noindex"),
      ])
    let facts = try #require(stage.emulator.object("docs", "a"))
    #expect(facts.contentType == "text/plain; charset=UTF-8")
    #expect(facts.cacheControl == "max-age=5")
    #expect(facts.userMetadata == ["mtime": "7"])
    #expect(try stage.get("a").headers["X-Robots-Tag"] == "noindex")
  }

  @Test func unreadableMetadataIsIgnored() throws {
    let stage = try Stage()
    let answer = try stage.upload("a", "x".bytes, headers: [("x-metadata", "%%%")])
    #expect(answer.status == 200)
    #expect(stage.emulator.object("docs", "a")?.userMetadata == [:])
    #expect(stage.emulator.object("docs", "a")?.contentType == "application/octet-stream")
  }

  @Test func anOverwriteKeepsTheIDAndWipesUserMetadata() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "1".bytes, userMetadata: ["mtime": "7"])
    let before = try #require(stage.emulator.object("docs", "a"))
    stage.emulator.advanceClock(seconds: 5)
    #expect(try stage.upload("a", "2".bytes, method: "PUT").status == 200)
    let after = try #require(stage.emulator.object("docs", "a"))
    #expect(after.id == before.id)
    #expect(after.createdAt == before.createdAt)
    #expect(before.updatedAt < after.updatedAt)
    #expect(after.version != before.version)
    #expect(after.userMetadata == [:])
    #expect(try stage.get("a").text == "2")
  }

  @Test func theSameBytesGiveTheSameTagAndAnotherVersion() throws {
    let stage = try Stage()
    _ = try stage.upload("a", "1".bytes)
    let before = try #require(stage.emulator.object("docs", "a"))
    _ = try stage.upload("a", "1".bytes, method: "PUT")
    let after = try #require(stage.emulator.object("docs", "a"))
    #expect(before.tag == after.tag)
    #expect(before.version != after.version)
  }

  @Test func postOverwritesOnlyWithXUpsertExactlyTrue() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "1".bytes)
    for value in ["True", "1", "false"] {
      let answer = try stage.upload("a", "2".bytes, headers: [("x-upsert", value)])
      #expect(answer.refusal == "400 409 Duplicate KeyAlreadyExists")
      #expect(answer.message == "The resource already exists")
    }
    #expect(try stage.upload("a", "2".bytes, headers: [("x-upsert", "true")]).status == 200)
    #expect(try stage.get("a").text == "2")
  }

  @Test func aMissingBucketIsSaidFirst() throws {
    let stage = try Stage()
    let answer = try stage.send(
      "POST", "/object/nowhere/%23", headers: stage.service, body: "x".bytes)
    #expect(answer.refusal == "400 404 Bucket not found NoSuchBucket")
  }

  @Test func aZeroByteUploadIsAnObject() throws {
    let stage = try Stage()
    #expect(try stage.upload("empty", []).status == 200)
    let answer = try stage.get("empty")
    #expect(answer.headers["ETag"] == "\"d41d8cd98f00b204e9800998ecf8427e\"")
    #expect(answer.headers["Content-Length"] == "0")
  }

  @Test func mimeRulesCompareTheWholeText() throws {
    let stage = try Stage()
    stage.emulator.createBucket("typed", allowedTypes: ["text/plain", "image/*"])
    for (type, status) in [
      ("text/plain", 200), ("text/plain; charset=UTF-8", 400), ("image/png", 200),
      ("application/json", 400),
    ] {
      let answer = try stage.send(
        "PUT", "/object/typed/a", headers: stage.service + [("Content-Type", type)],
        body: "x".bytes)
      #expect(answer.status == status)
      if status == 400 {
        #expect(answer.refusal == "400 415 invalid_mime_type InvalidMimeType")
        #expect(answer.message == "mime type \(type) is not supported")
      }
    }
    let garbage = try stage.upload("a", "x".bytes, headers: [("Content-Type", "nonsense")])
    #expect(garbage.refusal == "400 415 invalid_mime_type InvalidMimeType")
    #expect(garbage.message == "Invalid Content-Type header")
  }

  @Test func aBodyAboveTheLimitIsRefusedBeforeItIsRead() throws {
    let stage = try Stage()
    stage.emulator.createBucket("small", sizeLimit: 10)
    // Only the head is sent: the answer does not wait for the body.
    let head =
      "POST /object/small/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
      + stage.emulator.serviceKey + "\r\nContent-Length: 1000000\r\n\r\n"
    let answer = try #require(try stage.client.exchange(head.bytes))
    #expect(answer.refusal == "400 413 Payload too large EntityTooLarge")
    #expect(answer.headers["Connection"] == "close")
  }

  @Test func aChunkedBodyIsNeverMeasured() throws {
    let stage = try Stage()
    stage.emulator.createBucket("small", sizeLimit: 10)
    let request =
      "POST /object/small/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
      + stage.emulator.serviceKey
      + "\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\na;x=y\r\n89abcdefgh\r\n0\r\n\r\n"
    #expect(try stage.client.exchange(request.bytes)?.status == 200)
    #expect(try stage.emulator.bytes("small", "a") == "0123456789abcdefgh".bytes)
  }

  @Test func expectContinueIsAnsweredBeforeTheBody() throws {
    let stage = try Stage()
    let request =
      "PUT /object/docs/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
      + stage.emulator.serviceKey
      + "\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi"
    #expect(try stage.client.exchange(request.bytes)?.status == 200)
    #expect(try stage.get("a").text == "hi")
  }

  private func multipart(_ parts: [(head: String, body: String)]) -> [UInt8] {
    var text = ""
    for part in parts { text += "--xyz\r\n\(part.head)\r\n\r\n\(part.body)\r\n" }
    return (text + "--xyz--\r\n").bytes
  }

  private let form = [("Content-Type", "multipart/form-data; boundary=xyz")]

  @Test func multipartTakesTheFirstFileAndTheFieldsBeforeIt() throws {
    let stage = try Stage()
    let answer = try stage.upload(
      "m",
      multipart([
        ("Content-Disposition: form-data; name=\"cacheControl\"", "60"),
        ("Content-Disposition: form-data; name=\"metadata\"", "{\"a\":1}"),
        (
          "Content-Disposition: form-data; name=\"\"; filename=\"b.txt\"\r\n"
            + "Content-Type: text/csv", "line\r\n--xy\r\nend"
        ),
        ("Content-Disposition: form-data; name=\"contentType\"", "image/png"),
      ]), headers: form)
    #expect(answer.status == 200)
    let facts = try #require(stage.emulator.object("docs", "m"))
    #expect(try stage.emulator.bytes("docs", "m") == "line\r\n--xy\r\nend".bytes)
    #expect(facts.contentType == "text/csv")
    #expect(facts.cacheControl == "max-age=60")
    #expect(facts.userMetadata == ["a": 1])
  }

  @Test func multipartContentTypeFieldOverridesThePart() throws {
    let stage = try Stage()
    _ = try stage.upload(
      "m",
      multipart([
        ("Content-Disposition: form-data; name=\"contentType\"", "image/png"),
        ("Content-Disposition: form-data; name=\"file\"; filename=\"b\"", "x"),
      ]), headers: form)
    #expect(stage.emulator.object("docs", "m")?.contentType == "image/png")
    #expect(stage.emulator.object("docs", "m")?.cacheControl == "no-cache")
  }

  @Test func aBoundaryMayLieAcrossThePiecesInWhichABodyIsRead() throws {
    let stage = try Stage()
    let body =
      ("--xyz\r\nContent-Disposition: form-data; name=\"\"; filename=\"f\"\r\n\r\n"
      + "a\r\n--xy, nearly\r\n--xyz--\r\n").bytes
    let head =
      "PUT /object/docs/m HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
      + "Authorization: Bearer \(stage.emulator.serviceKey)\r\n"
      + "Content-Type: multipart/form-data; boundary=xyz\r\nTransfer-Encoding: chunked\r\n\r\n"
    for cut in 1..<body.count {
      // A chunk is read as a piece of its own.
      var request = head.bytes
      for piece in [body[..<cut], body[cut...]] {
        request += (String(piece.count, radix: 16) + "\r\n").bytes + piece + "\r\n".bytes
      }
      let answer = try #require(try stage.client.exchange(request + "0\r\n\r\n".bytes))
      #expect(answer.status == 200)
      #expect(try stage.emulator.bytes("docs", "m") == "a\r\n--xy, nearly".bytes)
    }
  }

  @Test func multipartWithoutAFileIsRefused() throws {
    let stage = try Stage()
    let answer = try stage.upload(
      "m", multipart([("Content-Disposition: form-data; name=\"a\"", "x")]), headers: form)
    #expect(answer.refusal == "400 400 InvalidRequest InvalidRequest")
    #expect(answer.message == "No content provided")
  }

  @Test func multipartIsCutAtTheLimitWhileItIsRead() throws {
    let stage = try Stage()
    stage.emulator.createBucket("small", sizeLimit: 10)
    let answer = try stage.send(
      "POST", "/object/small/a", headers: stage.service + form,
      body: multipart([
        (
          "Content-Disposition: form-data; name=\"f\"; filename=\"b\"",
          String(repeating: "x", count: 5000)
        )
      ]))
    #expect(answer.refusal == "400 413 Payload too large EntityTooLarge")
    #expect(stage.emulator.object("small", "a") == nil)
  }

  @Test func aPlaceholderMustBeEmptyAndMayBeOfAnyType() throws {
    let stage = try Stage()
    stage.emulator.createBucket("typed", allowedTypes: ["image/png"])
    let path = "/object/typed/d/.emptyFolderPlaceholder"
    #expect(
      try stage.send("POST", path, headers: stage.service, body: "x".bytes).refusal
        == "400 413 Payload too large EntityTooLarge")
    #expect(try stage.send("POST", path, headers: stage.service, body: []).status == 200)
  }

  @Test func twoUploadsOfANewKeyWithoutUpsertBothSucceed() throws {
    let stage = try Stage()
    stage.emulator.setFault(
      Fault(method: "POST", route: "upload", times: 1, effect: .commitDelay(.milliseconds(400))))
    let first = Locked<Int?>(nil)
    let thread = try Thread(name: "first") {
      do {
        let answer = try stage.upload("race", "first".bytes)
        first.withLock { $0 = answer.status }
      } catch {
        first.withLock { $0 = -1 }
      }
    }
    // The first has passed the test and waits; nothing is stored yet.
    while stage.emulator.requests.entries().isEmpty {
      _ = Cancellation().sleep(until: .now + .milliseconds(5))
    }
    #expect(try stage.upload("race", "second".bytes).status == 200)
    #expect(thread.join(until: .now + .seconds(10)))
    #expect(first.withLock { $0 } == 200)
    #expect(try stage.get("race").text == "first")
  }

  @Test func keysAreASCIIWithAShortListOfSigns() throws {
    let stage = try Stage()
    let allowed = "!.*'() &$=@;:+,?-_/"
    for sign in allowed.utf8 {
      let key = ByteString([120, sign, 120])
      #expect(try stage.upload(Percent.encodePath(key), "x".bytes).status == 200)
      #expect(try stage.get(Percent.encodePath(key)).text == "x")
    }
    for key: ByteString in ["x~", "#x", "x%y", "x[1]", "x|", "é", "x\u{1}", "x\\y"] {
      for method in ["POST", "PUT"] {
        let answer = try stage.upload(Percent.encodePath(key), "x".bytes, method: method)
        #expect(answer.refusal == "400 400 InvalidKey InvalidKey")
        #expect(answer.message == "Invalid key: \(key.string ?? "")")
      }
      #expect(
        try stage.get(Percent.encodePath(key)).refusal == "400 400 InvalidKey InvalidKey")
      #expect(
        try stage.info(Percent.encodePath(key)).refusal == "400 400 InvalidKey InvalidKey")
    }
  }

  @Test func theKeyIsDecodedOnceAndNeverNormalised() throws {
    let stage = try Stage()
    for (path, key) in [
      ("a%2Fb", "a/b"), ("p+q", "p+q"), ("p%2Bq", "p+q"), ("d//e", "d//e"), ("/lead", "/lead"),
      ("dir/", "dir/"), ("x/../y", "x/../y"), ("./z", "./z"), ("s;t", "s;t"),
    ] {
      #expect(try stage.upload(path, "x".bytes, method: "PUT").status == 200)
      #expect(stage.emulator.object("docs", ByteString(key)) != nil)
    }
    #expect(try stage.upload("%2541", "x".bytes).message == "Invalid key: %41")
    #expect(try stage.upload("bad%zz", "x".bytes).refusal == "400 400 Error InvalidRequest")
    #expect(try stage.upload("bad%FF", "x".bytes).refusal == "400 400 Error InvalidRequest")
  }

  @Test func theFileBackendRefusesDotSegments() throws {
    let stage = try Stage(Configuration(profile: .local))
    for path in ["a/../b", "./a", ".."] {
      #expect(
        try stage.upload(path, "x".bytes).refusal == "400 400 InvalidKey InvalidKey")
    }
    #expect(try stage.upload("a..b", "x".bytes).status == 200)
  }

  @Test func anOldServerCutsThePathAtABareSemicolon() throws {
    let stage = try Stage(Configuration(profile: .old))
    _ = try stage.upload("a;b", "x".bytes)
    _ = try stage.upload("c%3Bd", "x".bytes)
    #expect(stage.emulator.keys("docs") == ["a", "c;d"])
  }

  @Test func aBucketNameAbove100CharactersHasNoRoute() throws {
    let stage = try Stage()
    let name = String(repeating: "b", count: 101)
    let answer = try stage.send("GET", "/object/\(name)/a", headers: stage.service)
    #expect(answer.refusal == "404 404 Not Found InvalidRequest")
    #expect(answer.message == "Route GET:/object/\(name)/a not found")
  }

  @Test func aKeyMayBeAFileAndAFolder() throws {
    let stage = try Stage()
    _ = try stage.upload("a", "1".bytes)
    _ = try stage.upload("a/x", "2".bytes)
    #expect(try stage.get("a").text == "1")
    #expect(try stage.get("a/x").text == "2")
  }
}
