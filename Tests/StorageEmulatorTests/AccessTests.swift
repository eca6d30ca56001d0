import Platform
import StorageEmulator
import Testing

@Suite struct AccessTests {
  private func bearer(_ token: String) -> [(String, String)] {
    [("Authorization", "Bearer " + token)]
  }

  private let read = Policies.Policy(bucket: "docs", allow: [.select])

  @Test func protectedRoutesTellMissingBadAndExpiredTokensApart() throws {
    let stage = try Stage.withUsers([read])
    try stage.emulator.put("docs", "a", "x".bytes)
    stage.emulator.setTokens(life: 2)
    let ann = try stage.user(Stage.ann)
    #expect(try stage.get("a", as: ann).status == 200)

    let missing = try stage.get("a", as: [])
    #expect(missing.refusal == "400 400 Error InvalidRequest")
    #expect(missing.message == "headers must have required property 'authorization'")

    let malformed = try stage.get("a", as: bearer("nonsense"))
    #expect(malformed.refusal == "400 403 Unauthorized AccessDenied")
    #expect(malformed.message == "Invalid Compact JWS")

    let other = try Stage()
    let forged = try stage.get("a", as: bearer(other.emulator.serviceKey))
    #expect(forged.message == "signature verification failed")

    // alg none
    let none = "eyJhbGciOiJub25lIn0.e30."
    #expect(
      try stage.get("a", as: bearer(none)).message
        == "\"alg\" (Algorithm) Header Parameter value not allowed")

    stage.emulator.advanceClock(seconds: 2)
    let expired = try stage.get("a", as: ann)
    #expect(expired.refusal == "400 403 Unauthorized AccessDenied")
    #expect(expired.message == "\"exp\" claim timestamp check failed")
  }

  @Test func aLenientRouteTakesAnExpiredTokenForNobody() throws {
    let stage = try Stage.withUsers([read])
    try stage.emulator.put("docs", "a", "x".bytes)
    stage.emulator.setTokens(life: 2)
    let ann = try stage.user(Stage.ann)
    let path = "/object/docs/a"
    #expect(try stage.send("GET", path, headers: ann).status == 200)
    stage.emulator.advanceClock(seconds: 2)
    for headers in [ann, [], bearer("nonsense")] {
      let answer = try stage.send("GET", path, headers: headers)
      #expect(answer.refusal == "400 404 Bucket not found NoSuchBucket")
      let info = try stage.send("GET", "/object/info/docs/a", headers: headers)
      #expect(info.refusal == "400 404 Bucket not found NoSuchBucket")
    }
    // The anon key is a token: it gets as far as the object.
    #expect(
      try stage.send("GET", path, headers: stage.anonymous).refusal
        == "400 404 not_found NoSuchKey")
  }

  @Test func aPublicBucketIsReadByAnyoneWithoutPolicies() throws {
    let stage = try Stage()
    stage.emulator.createBucket("open", isPublic: true)
    try stage.emulator.put("open", "a", "x".bytes)
    #expect(try stage.send("GET", "/object/public/open/a").text == "x")
    #expect(try stage.send("GET", "/object/open/a").text == "x")
    #expect(try stage.send("GET", "/object/info/public/open/a").status == 200)
    #expect(
      try stage.send("GET", "/object/authenticated/open/a", headers: stage.anonymous).text == "x")
    #expect(
      try stage.send("GET", "/object/authenticated/open/a", headers: bearer("x")).refusal
        == "400 403 Unauthorized AccessDenied")
    // Listing still obeys the policies.
    #expect(
      try stage.post("/object/list/open", ["prefix": ""], as: stage.anonymous).json == [])
    #expect(
      try stage.send("GET", "/object/public/docs/a").refusal
        == "400 404 Bucket not found NoSuchBucket")
  }

  @Test func theBearerWordIsReadWithoutRegardToCaseAndMayBeAbsent() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "x".bytes)
    for value in ["bearer ", "BEARER ", ""] {
      #expect(
        try stage.get("a", as: [("Authorization", value + stage.emulator.serviceKey)]).status
          == 200)
    }
  }

  @Test func theBareServerIgnoresApikeyAndDoesNotKnowTheNewKeys() throws {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", "x".bytes)
    #expect(try stage.get("a", [("apikey", "wrong")]).status == 200)
    let answer = try stage.get(
      "a", [("apikey", stage.emulator.secretKey)], as: bearer(stage.emulator.secretKey))
    #expect(answer.refusal == "400 403 Unauthorized AccessDenied")
    #expect(answer.message == "Invalid Compact JWS")
  }

  @Test func theGatewayMapsTheNewKeysAndRefusesAWrongApikey() throws {
    let stage = try Stage(
      Configuration(policies: Policies(anonymous: [read])))
    try stage.emulator.put("docs", "a", "x".bytes)
    let path = "/storage/v1/object/authenticated/docs/a"
    let secret = stage.emulator.secretKey
    let publishable = stage.emulator.publishableKey
    for headers in [
      [("apikey", publishable)], [("apikey", publishable)] + bearer(publishable),
      [("apikey", secret)] + bearer(secret), [("apikey", stage.emulator.anonKey)],
      bearer(stage.emulator.anonKey),
    ] {
      #expect(try stage.send("GET", path, headers: headers).status == 200)
    }
    let wrong = try stage.send("GET", path, headers: stage.service + [("apikey", "wrong")])
    #expect(wrong.status == 401)
    #expect(wrong.message == "Invalid API key")
    // A session's token goes through untouched beside the new key.
    let upload = try stage.send(
      "POST", "/storage/v1/object/docs/b", headers: [("apikey", publishable)] + stage.service,
      body: "x".bytes)
    #expect(upload.status == 200)
    let refused = try stage.send(
      "POST", "/storage/v1/object/docs/c", headers: [("apikey", publishable)], body: "x".bytes)
    #expect(refused.refusal == "400 403 Unauthorized AccessDenied")
  }

  // MARK: row-level security

  @Test func whatSelectDoesNotAllowLooksMissing() throws {
    let stage = try Stage.withUsers([
      Policies.Policy(bucket: "docs", prefix: "ann/", allow: [.select])
    ])
    try stage.emulator.put("docs", keys: ["ann/a", "bob/b"], "x".bytes)
    let ann = try stage.user(Stage.ann)
    #expect(try stage.get("ann/a", as: ann).status == 200)
    for path in ["bob/b", "ann/none"] {
      #expect(try stage.get(path, as: ann).refusal == "400 404 not_found NoSuchKey")
      #expect(try stage.info(path, as: ann).refusal == "400 404 not_found NoSuchKey")
    }
    let list = try stage.post("/object/list-v2/docs", [:], as: ann)
    #expect(list.json["objects"]?.items?.compactMap { $0["name"]?.text } == ["ann/a"])
    let old = try stage.post("/object/list/docs", ["prefix": ""], as: ann)
    #expect(old.json.items?.compactMap { $0["name"]?.text } == ["ann"])
    #expect(
      try stage.post("/object/list-v2/docs", [:], as: stage.user(Stage.bob)).json["objects"] == [])
  }

  @Test func insertAloneCreatesButNeverOverwritesAndLeaksExistence() throws {
    let stage = try Stage.withUsers([Policies.Policy(bucket: "docs", allow: [.insert])])
    try stage.emulator.put("docs", "there", "x".bytes)
    let ann = try stage.user(Stage.ann)
    #expect(try stage.upload("new", "1".bytes, as: ann).status == 200)
    #expect(
      try stage.upload("there", "1".bytes, as: ann).refusal
        == "400 409 Duplicate KeyAlreadyExists")
    for method in ["PUT", "POST"] {
      let answer = try stage.upload(
        "other", "1".bytes, method: method, headers: [("x-upsert", "true")], as: ann)
      #expect(answer.refusal == "400 403 Unauthorized AccessDenied")
      #expect(answer.message == "new row violates row-level security policy")
    }
    let bob = try stage.user(Stage.bob)
    #expect(
      try stage.upload("there", "1".bytes, as: bob).refusal
        == "400 403 Unauthorized AccessDenied")
  }

  @Test func anUpsertOfANewKeyNeedsSelectAndOfAnOldOneUpdateToo() throws {
    let stage = try Stage.withUsers([Policies.Policy(bucket: "docs", allow: [.insert, .select])])
    try stage.emulator.put("docs", "there", "x".bytes)
    let ann = try stage.user(Stage.ann)
    #expect(try stage.upload("new", "1".bytes, method: "PUT", as: ann).status == 200)
    #expect(
      try stage.upload("there", "1".bytes, method: "PUT", as: ann).refusal
        == "400 403 Unauthorized AccessDenied")
    stage.emulator.setPolicies(
      Policies(users: [
        Policies.User(
          email: Stage.ann, password: "a",
          policies: [Policies.Policy(bucket: "docs", allow: [.insert, .select, .update])])
      ]))
    #expect(try stage.upload("there", "1".bytes, method: "PUT", as: ann).status == 200)
  }

  @Test func ownFilesOnlyFollowsTheLastWriter() throws {
    let stage = try Stage.withUsers([Policies.Policy(bucket: "docs", ownOnly: true)])
    try stage.emulator.put("docs", "theirs", "x".bytes)
    let ann = try stage.user(Stage.ann)
    #expect(try stage.get("theirs", as: ann).refusal == "400 404 not_found NoSuchKey")
    #expect(try stage.upload("mine", "1".bytes, as: ann).status == 200)
    #expect(try stage.get("mine", as: ann).status == 200)
    // The service writes over it and becomes its owner.
    #expect(try stage.upload("mine", "2".bytes, method: "PUT").status == 200)
    #expect(try stage.get("mine", as: ann).refusal == "400 404 not_found NoSuchKey")
  }

  @Test func theRefusalComesBeforeTheBody() throws {
    let stage = try Stage.withUsers([read])
    let token = try #require(try stage.user(Stage.ann).first?.1)
    let head =
      "PUT /object/docs/a HTTP/1.1\r\nHost: x\r\nAuthorization: \(token)\r\n"
      + "Content-Length: 1000000\r\n\r\n"
    let answer = try #require(try stage.client.exchange(head.bytes))
    #expect(answer.refusal == "400 403 Unauthorized AccessDenied")
    #expect(answer.headers["Connection"] == "close")
  }

  @Test func usersAndPoliciesAreReadFromAFileOfJSON() throws {
    let stage = try Stage()
    try stage.emulator.readUsers(
      """
      {"users": [{"email": "c@x", "password": "p", "policies":
        [{"bucket": "photos", "prefix": "c/", "allow": ["select"], "own": false}]}],
       "anon": [{"bucket": "*", "on": "buckets", "allow": ["select"]}],
       "buckets": [{"name": "photos", "public": false, "file_size_limit": 10}]}
      """.bytes)
    try stage.emulator.put("photos", keys: ["c/a", "d/a"], "x".bytes)
    let answer = try stage.signIn("c@x", "p")
    let user = bearer(try #require(answer.json["access_token"]?.text))
    #expect(try stage.send("GET", "/object/authenticated/photos/c/a", headers: user).status == 200)
    #expect(try stage.send("GET", "/object/authenticated/photos/d/a", headers: user).status == 400)
    let buckets = try stage.send("GET", "/bucket", headers: stage.anonymous)
    #expect(buckets.json.items?.count == 2)
    #expect(throws: Policies.Unreadable.self) {
      try stage.emulator.readUsers(#"{"anon": [{"bucket": "b", "allow": ["read"]}]}"#.bytes)
    }
    #expect(throws: Policies.Unreadable.self) {
      try stage.emulator.readUsers("{".bytes)
    }
  }
}
