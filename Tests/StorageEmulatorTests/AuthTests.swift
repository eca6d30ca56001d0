import Platform
import StorageEmulator
import Testing

@Suite struct AuthTests {
  private func code(_ answer: RawClient.Answer) -> String {
    "\(answer.status) \(answer.json["error_code"]?.text ?? "-")"
  }

  private func tokens(_ answer: RawClient.Answer) throws -> (access: String, refresh: String) {
    try #require(answer.status == 200)
    return (
      try #require(answer.json["access_token"]?.text),
      try #require(answer.json["refresh_token"]?.text)
    )
  }

  @Test func aPasswordGivesATokenThatSaysHowLongItLives() throws {
    let stage = try Stage.withUsers([])
    stage.emulator.setTokens(life: 120)
    let answer = try stage.signIn(Stage.ann, "a")
    #expect(answer.status == 200)
    #expect(answer.json["token_type"] == "bearer")
    #expect(answer.json["expires_in"] == 120)
    #expect(answer.json["user"]?["email"] == .string(Stage.ann))
    let parts = try tokens(answer).access.split(separator: ".")
    let claims = try JSON(reading: try #require(Base64.decode(String(parts[1]))))
    #expect(claims["role"] == "authenticated")
    #expect(claims["exp"] == answer.json["expires_at"])
    #expect(claims["sub"] == answer.json["user"]?["id"])
    #expect(claims["session_id"]?.text != nil)
  }

  @Test func aWrongPasswordIsRefusedInBothShapes() throws {
    let stage = try Stage.withUsers([])
    let old = try stage.signIn(Stage.ann, "wrong")
    #expect(
      old.text
        == "{\"code\":400,\"error_code\":\"invalid_credentials\",\"msg\":\"Invalid login credentials\"}"
    )
    #expect(old.headers["x-sb-error-code"] == "invalid_credentials")
    let new = try stage.auth(
      "token?grant_type=password", ["email": "x", "password": "y"],
      headers: [("X-Supabase-Api-Version", "2024-01-01")])
    #expect(
      new.text == "{\"code\":\"invalid_credentials\",\"message\":\"Invalid login credentials\"}")
    #expect(new.status == 400)
  }

  @Test func everyRefreshGivesANewTokenAndTheParentIsTakenOnceMore() throws {
    let stage = try Stage.withUsers([])
    stage.emulator.setTokens(life: 60, reuseInterval: 10)
    let first = try tokens(try stage.signIn(Stage.ann, "a")).refresh
    let second = try tokens(try stage.refresh(first)).refresh
    #expect(second != first)
    // The answer was lost: the parent of the active token yields the active one, however late.
    stage.emulator.advanceClock(seconds: 100)
    #expect(try tokens(try stage.refresh(first)).refresh == second)
  }

  @Test func aGrandparentIsTakenWithinTheReuseIntervalOnly() throws {
    let stage = try Stage.withUsers([])
    stage.emulator.setTokens(life: 60, reuseInterval: 10)
    let first = try tokens(try stage.signIn(Stage.ann, "a")).refresh
    let second = try tokens(try stage.refresh(first)).refresh
    let third = try tokens(try stage.refresh(second)).refresh
    #expect(try tokens(try stage.refresh(first)).refresh == third)
    stage.emulator.advanceClock(seconds: 11)
    // Reuse outside it counts as theft: the whole session ends.
    #expect(code(try stage.refresh(first)) == "400 refresh_token_already_used")
    #expect(code(try stage.refresh(third)) == "400 refresh_token_not_found")
  }

  @Test func anUnknownRefreshTokenIsRefused() throws {
    let stage = try Stage.withUsers([])
    #expect(code(try stage.refresh("nonsense")) == "400 refresh_token_not_found")
    #expect(code(try stage.refresh("")) == "400 validation_failed")
    #expect(code(try stage.auth("token?grant_type=magic", [:])) == "400 invalid_credentials")
  }

  @Test func signingOutEndsTheSessionButStorageTakesTheTokenUntilItExpires() throws {
    let stage = try Stage.withUsers([Policies.Policy(bucket: "docs", allow: [.select])])
    try stage.emulator.put("docs", "a", "x".bytes)
    let mine = try tokens(try stage.signIn(Stage.ann, "a"))
    let other = try tokens(try stage.signIn(Stage.ann, "a"))
    let bearer = [("Authorization", "Bearer " + mine.access)]
    let key = [("apikey", stage.emulator.anonKey)]
    #expect(try stage.send("GET", "/auth/v1/user", headers: key + bearer).status == 200)
    let out = try stage.send("POST", "/auth/v1/logout?scope=local", headers: key + bearer)
    #expect(out.status == 204)
    #expect(code(try stage.refresh(mine.refresh)) == "400 refresh_token_not_found")
    #expect(
      code(try stage.send("GET", "/auth/v1/user", headers: key + bearer))
        == "403 session_not_found")
    #expect(try stage.get("a", as: bearer).status == 200)
    #expect(try stage.refresh(other.refresh).status == 200)
    stage.emulator.revokeSessions(of: Stage.ann)
    #expect(code(try stage.refresh(other.refresh)) == "400 refresh_token_not_found")
  }

  @Test func theAuthSurfaceNeedsAnApikey() throws {
    let stage = try Stage.withUsers([])
    let none = try stage.send(
      "POST", "/auth/v1/token?grant_type=password", body: "{}".bytes)
    #expect(none.status == 401)
    #expect(none.message == "No API key found in request")
    let wrong = try stage.send(
      "POST", "/auth/v1/token?grant_type=password", headers: [("apikey", "x")],
      body: "{}".bytes)
    #expect(wrong.status == 401)
    #expect(wrong.message == "Invalid API key")
  }

  @Test func anonymousSignUpIsDisabled() throws {
    let stage = try Stage.withUsers([])
    #expect(code(try stage.auth("signup", [:])) == "422 anonymous_provider_disabled")
  }

  @Test func theTokenEndpointCanBeOverloadedByAFault() throws {
    let stage = try Stage.withUsers([])
    for (status, code) in [(409, "conflict"), (429, "over_request_rate_limit")] {
      stage.emulator.setFault(
        Fault(
          route: "auth", times: 1,
          effect: .status(
            status, ["code": .integer(Int64(status)), "error_code": .string(code)])))
      #expect(self.code(try stage.signIn(Stage.ann, "a")) == "\(status) \(code)")
    }
    #expect(try stage.signIn(Stage.ann, "a").status == 200)
  }
}
