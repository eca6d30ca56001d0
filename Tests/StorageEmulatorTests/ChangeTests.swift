import Platform
import StorageEmulator
import Testing

@Suite struct ChangeTests {
  @Test func aSingleRemovalTellsMissingFromRefused() throws {
    let stage = try Stage.withUsers([Policies.Policy(bucket: "docs", allow: [.select])])
    try stage.emulator.put("docs", "a", "x".bytes)
    let ann = try stage.user(Stage.ann)
    func remove(_ path: String, _ headers: [(String, String)]) throws -> RawClient.Answer {
      try stage.send("DELETE", "/object/docs/" + path, headers: headers)
    }
    let refused = try remove("a", ann)
    #expect(refused.refusal == "400 403 Unauthorized AccessDenied")
    #expect(refused.message == "Access denied")
    #expect(try remove("b", ann).refusal == "400 404 not_found NoSuchKey")
    #expect(try remove("a", stage.service).text == "{\"message\":\"Successfully deleted\"}")
    #expect(try remove("a", stage.service).refusal == "400 404 not_found NoSuchKey")
    #expect(stage.emulator.keys("docs") == [])
  }

  @Test func aBulkRemovalTakesExactKeysAndLeavesOutTheRest() throws {
    let stage = try Stage.withUsers([
      Policies.Policy(bucket: "docs", prefix: "ann/", allow: [.select, .delete]),
      Policies.Policy(bucket: "docs", prefix: "shown/", allow: [.select]),
      Policies.Policy(bucket: "docs", prefix: "blind/", allow: [.delete]),
    ])
    try stage.emulator.put(
      "docs", keys: ["ann/a", "ann/ab", "blind/d", "bob/b", "shown/c"], "x".bytes)
    let ann = try stage.user(Stage.ann)
    let facts = try #require(stage.emulator.object("docs", "ann/a"))
    let answer = try stage.post(
      "/object/docs", ["prefixes": ["ann/a", "bob/b", "shown/c", "blind/d", "none"]],
      method: "DELETE", as: ann)
    #expect(answer.status == 200)
    #expect(answer.json.items?.compactMap { $0["name"]?.text } == ["ann/a"])
    let row = try #require(answer.json.items?.first)
    #expect(row["version"] == .string(facts.version))
    #expect(row["bucket_id"] == "docs")
    #expect(row["owner"] == "")
    #expect(row["metadata"]?["size"] == 1)
    #expect(stage.emulator.keys("docs") == ["ann/ab", "blind/d", "bob/b", "shown/c"])
    let missing = try stage.post("/object/nowhere", ["prefixes": ["a"]], method: "DELETE")
    #expect(missing.json == [])
    let empty = try stage.post("/object/docs", ["prefixes": []], method: "DELETE")
    #expect(empty.refusal == "400 400 Error InvalidRequest")
  }

  private func move(
    _ stage: Stage, _ from: String, _ to: String, as caller: [(String, String)]? = nil,
    bucket: String? = nil
  ) throws -> RawClient.Answer {
    var members: [JSON.Member] = [
      JSON.Member("bucketId", "docs"), JSON.Member("sourceKey", .string(from)),
      JSON.Member("destinationKey", .string(to)),
    ]
    if let bucket { members.append(JSON.Member("destinationBucket", .string(bucket))) }
    return try stage.post("/object/move", .object(members), as: caller)
  }

  @Test func aMoveKeepsTheIDAndNeverOverwrites() throws {
    let stage = try Stage()
    stage.emulator.createBucket("other")
    try stage.emulator.put("docs", "a", "1".bytes, userMetadata: ["m": 1])
    try stage.emulator.put("docs", "b", "2".bytes)
    let before = try #require(stage.emulator.object("docs", "a"))
    #expect(try move(stage, "a", "b").refusal == "400 409 Duplicate KeyAlreadyExists")
    #expect(try move(stage, "a", "a").json == ["message": "Successfully moved"])
    #expect(try move(stage, "a", "c").json == ["message": "Successfully moved"])
    let after = try #require(stage.emulator.object("docs", "c"))
    #expect(after.id == before.id)
    #expect(after.userMetadata == before.userMetadata)
    #expect(after.createdAt == before.createdAt)
    #expect(after.version != before.version)
    #expect(stage.emulator.keys("docs") == ["b", "c"])
    #expect(try move(stage, "a", "d").refusal == "400 404 not_found NoSuchKey")
    #expect(try move(stage, "c", "x/y", bucket: "other").status == 200)
    #expect(stage.emulator.keys("other") == ["x/y"])
    #expect(try move(stage, "b", "e#").refusal == "400 400 InvalidKey InvalidKey")
  }

  @Test func aMoveNeedsUpdateOnBothKeys() throws {
    let stage = try Stage.withUsers([
      Policies.Policy(bucket: "docs", allow: [.select]),
      Policies.Policy(bucket: "docs", prefix: "ann/", allow: [.update]),
    ])
    try stage.emulator.put("docs", keys: ["ann/a", "bob/b"], "x".bytes)
    let ann = try stage.user(Stage.ann)
    #expect(try move(stage, "bob/b", "ann/b", as: ann).refusal == "400 404 not_found NoSuchKey")
    #expect(
      try move(stage, "ann/a", "bob/a", as: ann).refusal
        == "400 403 Unauthorized AccessDenied")
    #expect(try move(stage, "ann/a", "ann/b", as: ann).status == 200)
  }

  private func copy(
    _ stage: Stage, _ from: String, _ to: String, _ more: [JSON.Member] = [],
    headers: [(String, String)] = []
  ) throws -> RawClient.Answer {
    try stage.post(
      "/object/copy",
      .object(
        [
          JSON.Member("bucketId", "docs"), JSON.Member("sourceKey", .string(from)),
          JSON.Member("destinationKey", .string(to)),
        ] + more), as: stage.service + headers)
  }

  @Test func aCopyHasAnIDOfItsOwnAndAnOverwrittenTargetKeepsIts() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "1".bytes, userMetadata: ["m": 1])
    try stage.emulator.put("docs", "b", "2".bytes)
    let source = try #require(stage.emulator.object("docs", "a"))
    let target = try #require(stage.emulator.object("docs", "b"))
    #expect(try copy(stage, "a", "b").refusal == "400 409 Duplicate KeyAlreadyExists")
    #expect(try copy(stage, "none", "c").refusal == "400 404 not_found NoSuchKey")
    let made = try copy(stage, "a", "c")
    #expect(made.json["Key"] == "docs/c")
    #expect(made.json["Id"]?.text != source.id)
    #expect(made.json["name"] == "c")
    #expect(stage.emulator.object("docs", "c")?.userMetadata == ["m": 1])
    #expect(try copy(stage, "a", "b", headers: [("x-upsert", "true")]).status == 200)
    #expect(stage.emulator.object("docs", "b")?.id == target.id)
    #expect(try stage.get("b").text == "1")
  }

  @Test func aCopyOntoItselfChangesUserMetadata() throws {
    let stage = try Stage()
    try stage.emulator.put(
      "docs", "a", "1".bytes, contentType: "text/plain", userMetadata: ["m": 1])
    let before = try #require(stage.emulator.object("docs", "a"))
    let answer = try copy(
      stage, "a", "a",
      [
        JSON.Member("copyMetadata", false),
        JSON.Member("metadata", ["cacheControl": "max-age=9"]),
      ],
      headers: [("x-upsert", "true"), ("x-metadata", Base64.encode("{\"m\":2}".bytes))])
    #expect(answer.status == 200)
    let after = try #require(stage.emulator.object("docs", "a"))
    #expect(after.userMetadata == ["m": 2])
    #expect(after.cacheControl == "max-age=9")
    #expect(after.contentType == "text/plain")
    #expect(after.id == before.id)
    #expect(after.version != before.version)
    #expect(try stage.get("a").text == "1")
  }

  // MARK: buckets

  @Test func bucketsAreMadeChangedEmptiedAndRemoved() throws {
    let stage = try Stage()
    let made = try stage.post(
      "/bucket",
      [
        "name": "made", "public": false, "file_size_limit": "20MB",
        "allowed_mime_types": ["image/*"],
      ])
    #expect(made.text == "{\"name\":\"made\"}")
    let shown = try stage.send("GET", "/bucket/made", headers: stage.service).json
    #expect(shown["file_size_limit"] == 20_000_000)
    #expect(shown["allowed_mime_types"] == ["image/*"])
    #expect(shown["owner"] == "")
    #expect(shown["public"] == false)
    #expect(shown["type"] == nil)
    #expect(
      try stage.post("/bucket", ["name": "made"]).refusal
        == "400 409 Duplicate BucketAlreadyExists")
    for name in [" lead", "a/b", "", "x--table-s3", "é"] {
      #expect(
        try stage.post("/bucket", ["name": .string(name)]).refusal
          == "400 400 Invalid Input InvalidBucketName")
    }
    #expect(
      try stage.post("/bucket/made", ["public": true], method: "PUT").json
        == ["message": "Successfully updated"])
    try stage.emulator.put("made", "a", "x".bytes)
    #expect(try stage.send("GET", "/object/public/made/a").status == 200)
    #expect(
      try stage.send("DELETE", "/bucket/made", headers: stage.service).refusal
        == "400 409 ResourceNotEmpty ResourceNotEmpty")
    #expect(
      try stage.send("POST", "/bucket/made/empty", headers: stage.service).message
        == "Empty bucket has been queued. Completion may take up to an hour.")
    #expect(
      try stage.send("DELETE", "/bucket/made", headers: stage.service).json
        == ["message": "Successfully deleted"])
    #expect(
      try stage.send("GET", "/bucket/made", headers: stage.service).refusal
        == "400 404 Bucket not found NoSuchBucket")
  }

  @Test func bucketsAreListedInPagesAndBySearch() throws {
    let stage = try Stage()
    for name in ["alpha", "beta", "gamma"] { stage.emulator.createBucket(name) }
    func names(_ query: String) throws -> [String] {
      let answer = try stage.send("GET", "/bucket" + query, headers: stage.service)
      return answer.json.items?.compactMap { $0["name"]?.text } ?? []
    }
    #expect(try names("") == ["alpha", "beta", "docs", "gamma"])
    #expect(try names("?limit=2&offset=1") == ["beta", "docs"])
    #expect(try names("?search=A&sortColumn=name&sortOrder=desc") == ["gamma", "beta", "alpha"])
    let all = try stage.send("GET", "/bucket", headers: stage.service).json
    #expect(all.items?.first?["type"] == "STANDARD")
  }

  @Test func ordinaryUsersSeeNoBucketsThoughTheyReadTheirObjects() throws {
    let stage = try Stage.withUsers([Policies.Policy(bucket: "docs", allow: [.select])])
    try stage.emulator.put("docs", "a", "x".bytes)
    let ann = try stage.user(Stage.ann)
    #expect(try stage.send("GET", "/bucket", headers: ann).json == [])
    #expect(
      try stage.send("GET", "/bucket/docs", headers: ann).refusal
        == "400 404 Bucket not found NoSuchBucket")
    #expect(try stage.get("a", as: ann).status == 200)
    #expect(
      try stage.post("/bucket", ["name": "x"], as: ann).refusal
        == "400 403 Unauthorized AccessDenied")
    let empty = try stage.send("POST", "/bucket/docs/empty", headers: ann)
    #expect(empty.refusal == "403 403 Unauthorized AccessDenied")
    #expect(empty.message == "Access denied: Invalid role")
  }

  // MARK: signed URLs

  private func sign(_ stage: Stage, _ path: String, _ life: JSON) throws -> RawClient.Answer {
    try stage.post("/object/sign/docs/" + path, ["expiresIn": life])
  }

  @Test func aSignedURLIsRelativeUnencodedAndTimed() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "d/a b.txt", "x".bytes)
    let url = try #require(try sign(stage, "d/a%20b.txt", "60").json["signedURL"]?.text)
    #expect(url.hasPrefix("/object/sign/docs/d/a b.txt?token="))
    let target = url.split(separator: " ").joined(separator: "%20")
    let answer = try stage.send("GET", target)
    #expect(answer.text == "x")
    #expect(answer.headers["Cache-Control"] == nil)
    #expect(answer.headers["Expires"]?.hasSuffix("GMT") ?? false)
    #expect(try stage.send("HEAD", target).status == 200)
    stage.emulator.advanceClock(seconds: 61)
    let late = try stage.send("GET", target)
    #expect(late.refusal == "400 400 InvalidJWT InvalidJWT")
    #expect(late.message == "\"exp\" claim timestamp check failed")
  }

  @Test func aSignedURLHoldsForItsPathAndPurposeOnly() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", keys: ["a", "b"], "x".bytes)
    let url = try #require(try sign(stage, "a", 60).json["signedURL"]?.text)
    let token = try #require(url.split(separator: "=").last)
    #expect(
      try stage.send("GET", "/object/sign/docs/b?token=\(token)").refusal
        == "400 400 InvalidSignature InvalidSignature")
    let none = try stage.send("GET", "/object/sign/docs/a")
    #expect(none.message == "querystring must have required property 'token'")
    let upload = try stage.send(
      "PUT", "/object/upload/sign/docs/a?token=\(token)", body: "y".bytes)
    #expect(upload.message == "Token is not scoped for upload")
    #expect(try sign(stage, "none", 60).refusal == "400 404 not_found NoSuchKey")
    #expect(try sign(stage, "a", 0).refusal == "400 400 Error InvalidRequest")
  }

  @Test func theSingleFormBreaksOnReservedSignsAndTheBatchFormDoesNot() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a+b", "x".bytes)
    let one = try #require(try sign(stage, "a%2Bb", 60).json["signedURL"]?.text)
    #expect(
      try stage.send("GET", one).refusal == "400 400 InvalidSignature InvalidSignature")
    let many = try stage.post(
      "/object/sign/docs", ["expiresIn": 60, "paths": ["a+b", "none"]])
    let items = try #require(many.json.items)
    let url = try #require(items[0]["signedURL"]?.text)
    #expect(try stage.send("GET", url).text == "x")
    #expect(items[1]["signedURL"] == .null)
    #expect(
      items[1]["error"] == "Either the object does not exist or you do not have access to it")
  }

  @Test func aSignedUploadTakesUpsertFromItsTokenAndAnswersTheKeyAlone() throws {
    let stage = try Stage()
    let path = "/object/upload/sign/docs/a"
    let made = try stage.send("POST", path, headers: stage.service).json
    let token = try #require(made["token"]?.text)
    #expect(made["url"] == .string("/object/upload/sign/docs/a?token=" + token))
    let put = {
      try stage.send(
        "PUT", path + "?token=" + token, headers: [("x-upsert", "true")], body: "1".bytes)
    }
    #expect(try put().text == "{\"Key\":\"docs/a\"}")
    #expect(try put().refusal == "400 409 Duplicate KeyAlreadyExists")
    #expect(
      try stage.send("POST", path, headers: stage.service).refusal
        == "400 409 Duplicate KeyAlreadyExists")
    let again = try stage.send(
      "POST", path, headers: stage.service + [("x-upsert", "true")]
    ).json["token"]?.text
    let target = path + "?token=" + (try #require(again))
    #expect(try stage.send("PUT", target, body: "2".bytes).status == 200)
    stage.emulator.advanceClock(seconds: 61)
    #expect(
      try stage.send("PUT", target, body: "3".bytes).refusal
        == "400 400 InvalidJWT InvalidJWT")
    #expect(try stage.get("a").text == "2")
  }
}
