import Foundation
import Platform
import TestSupport
import Testing

@testable import BucketStore

@Suite struct SupabaseSessionTests {
  private let folder: URL
  private var file: String { folder.path + "/session.json" }
  private let address: SupabaseAddress

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "session-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    address = try SupabaseAddress("https://ref.supabase.co")
  }

  private func keep(
    _ access: String, _ refresh: String, lives seconds: Double, of user: String = "ann"
  ) throws {
    try StoredSession(
      accessToken: access, refreshToken: refresh,
      expires: Timestamp.now + Span(nanoseconds: Int64(seconds * 1e9)), userID: user
    ).save(file)
  }

  private func session(_ transport: any HTTPTransport) -> SupabaseSession {
    SupabaseSession(address: address, key: "anon", file: file, transport: transport)
  }

  private static func grant(_ access: String, _ refresh: String, lives: Int = 3_600)
    -> HTTPResponse
  {
    .json(
      200,
      "{\"access_token\":\"\(access)\",\"token_type\":\"bearer\",\"expires_in\":\(lives),"
        + "\"refresh_token\":\"\(refresh)\",\"user\":{\"id\":\"ann\",\"role\":\"x\"}}")
  }

  @Test func aKeyAloneSendsNoTokenUnlessItIsOne() throws {
    let transport = ScriptedTransport { _, _ in .failure(StoreError(.server, "unused")) }
    let plain = SupabaseSession(
      address: address, key: "sb_publishable_x", file: nil, transport: transport)
    #expect(plain.current == .keyOnly)
    #expect(try plain.bearer(Call()).token == nil)
    let legacy = SupabaseSession(
      address: address, key: "eyJhbGciOi.eyJyb2xlIj.c2ln", file: nil, transport: transport)
    #expect(try legacy.bearer(Call()).token == "eyJhbGciOi.eyJyb2xlIj.c2ln")
  }

  @Test func aTokenThatLivesIsSentWithoutAsking() throws {
    try keep("old", "r1", lives: 3_000)
    let transport = ScriptedTransport { _, _ in .failure(StoreError(.server, "unused")) }
    let session = session(transport)
    #expect(session.current == .signedIn)
    #expect(session.userID == "ann")
    #expect(try session.bearer(Call()) == .init(token: "old", isUser: true))
    #expect(transport.sent.isEmpty)
  }

  @Test func anExpiredTokenIsRenewedAndKeptBeforeItIsUsed() throws {
    try keep("old", "r1", lives: -1)
    let transport = ScriptedTransport { _, _ in .success(Self.grant("new", "r2")) }
    let session = session(transport)
    #expect(session.current == .restoring)
    #expect(try session.bearer(Call()).token == "new")
    #expect(session.current == .signedIn)
    let kept = try StoredSession(file: file)
    #expect(kept.accessToken == "new" && kept.refreshToken == "r2" && kept.userID == "ann")
    #expect(kept.expires.since(.now).seconds > 3_500)
    let request = try #require(transport.sent.first)
    #expect(request.url == "https://ref.supabase.co/auth/v1/token?grant_type=refresh_token")
    #expect(request.text == #"{"refresh_token":"r1"}"#)
    #expect(request.header("apikey") == "anon")
    #expect(request.header("Authorization") == nil)
    var status = stat()
    #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test func aTokenAboutToExpireIsRenewedAheadAndUsedWhenThatFails() throws {
    try keep("old", "r1", lives: 60)
    let transport = ScriptedTransport { _, _ in .failure(StoreError(.connectivity, "gone")) }
    let session = session(transport)
    #expect(try session.bearer(Call()).token == "old")
    #expect(session.current == .signedIn)
    #expect(try session.bearer(Call()).token == "old")
    #expect(transport.sent.count == 1)
    let working = ScriptedTransport { _, _ in .success(Self.grant("new", "r2")) }
    #expect(try self.session(working).bearer(Call()).token == "new")
  }

  @Test(arguments: [StoreError.Kind.connectivity, .timeout])
  func aLostNetworkKeepsTheSession(kind: StoreError.Kind) throws {
    try keep("old", "r1", lives: -1)
    let transport = ScriptedTransport { _, index in
      index == 0 ? .failure(StoreError(kind, "gone")) : .success(Self.grant("new", "r2"))
    }
    let session = session(transport)
    #expect(
      BucketStoreTests.kind { () throws(StoreError) in _ = try session.bearer(Call()) } == kind)
    #expect(session.current == .restoring)
    #expect(try StoredSession(file: file).refreshToken == "r1")
    #expect(try session.bearer(Call()).token == "new")
  }

  @Test(arguments: [
    HTTPResponse.json(500, #"{"code":500,"error_code":"unexpected_failure","msg":"x"}"#),
    .json(429, #"{"code":429,"error_code":"over_request_rate_limit","msg":"x"}"#),
    .json(409, #"{"code":"conflict","message":"Too many concurrent token refresh requests"}"#),
    .json(401, #"{"message":"Invalid API key"}"#),
    HTTPResponse(status: 502, headers: [:], body: Array("<html>".utf8)),
    HTTPResponse(status: 200, headers: [:], body: Array("<html>".utf8)),
    HTTPResponse(status: 400, headers: [:], body: Array("<html>".utf8)),
  ])
  func whatDoesNotRefuseTheSessionKeepsIt(answer: HTTPResponse) throws {
    try keep("old", "r1", lives: -1)
    let session = session(ScriptedTransport { _, _ in .success(answer) })
    let kind = BucketStoreTests.kind { () throws(StoreError) in _ = try session.bearer(Call()) }
    #expect(kind != nil && kind != .sessionExpired && kind != .notFound)
    #expect(session.current == .restoring)
    #expect(try StoredSession(file: file).refreshToken == "r1")
  }

  @Test(arguments: [
    #"{"code":400,"error_code":"refresh_token_already_used","msg":"Already Used"}"#,
    #"{"code":"refresh_token_not_found","message":"Not Found"}"#,
    #"{"error":"invalid_grant","error_description":"x"}"#,
    #"{"code":400,"error_code":"user_banned","msg":"banned"}"#,
  ])
  func aRefusedRefreshEndsTheSession(body: String) throws {
    try keep("old", "r1", lives: -1)
    let transport = ScriptedTransport { _, _ in .success(.json(400, body)) }
    let session = session(transport)
    for _ in 0..<3 {
      #expect(
        BucketStoreTests.kind { () throws(StoreError) in _ = try session.bearer(Call()) }
          == .sessionExpired)
    }
    #expect(session.current == .signedOut)
    #expect(transport.sent.count == 1, "a refused token is not sent again")
  }

  @Test func aNewSignInByAnotherProgramIsTakenUp() throws {
    try keep("old", "r1", lives: -1)
    let refused = #"{"code":"refresh_token_not_found","message":"Not Found"}"#
    let session = session(ScriptedTransport { _, _ in .success(.json(400, refused)) })
    #expect(
      BucketStoreTests.kind { () throws(StoreError) in _ = try session.bearer(Call()) }
        == .sessionExpired)
    try keep("fresh", "r9", lives: 3_000)
    #expect(try session.bearer(Call()).token == "fresh")
    #expect(session.current == .signedIn)
  }

  @Test(arguments: [3_000.0, -1])
  func somebodyElseWhoSignsInIsNeverTakenUp(lives: Double) throws {
    try keep("old", "r1", lives: -1)
    let refused = #"{"code":"refresh_token_not_found","message":"Not Found"}"#
    let transport = ScriptedTransport { _, _ in .success(.json(400, refused)) }
    // One whose session has ended by then, and one that was to be renewed only now.
    let ended = session(transport)
    #expect(
      BucketStoreTests.kind { () throws(StoreError) in _ = try ended.bearer(Call()) }
        == .sessionExpired)
    #expect(ended.userID == "ann")
    let restoring = session(transport)
    try keep("bob's", "r7", lives: lives, of: "bob")
    for session in [ended, restoring] {
      for _ in 0..<2 {
        #expect(
          BucketStoreTests.kind { () throws(StoreError) in _ = try session.bearer(Call()) }
            == .sessionExpired)
        #expect(
          BucketStoreTests.kind { () throws(StoreError) in
            _ = try session.renew(after: "old", refused: true, Call())
          } == .sessionExpired)
      }
      #expect(session.current == .signedOut)
      #expect(session.userID == "ann")
    }
    #expect(transport.sent.count == 1, "the other one's refresh token was used")
    #expect(try StoredSession(file: file).refreshToken == "r7")
    try keep("fresh", "r9", lives: 3_000)
    for session in [ended, restoring] {
      #expect(try session.bearer(Call()).token == "fresh")
      #expect(session.current == .signedIn)
    }
  }

  @Test func aTokenThatAnotherProgramRenewedIsTakenFromTheFile() throws {
    try keep("old", "r1", lives: 3_000)
    let transport = ScriptedTransport { _, _ in .failure(StoreError(.server, "unused")) }
    let session = session(transport)
    try keep("theirs", "r2", lives: 3_000)
    #expect(try session.renew(after: "old", refused: true, Call()) == "theirs")
    #expect(transport.sent.isEmpty)
  }

  @Test func nobodySignedInIsSaid() throws {
    let session = session(ScriptedTransport { _, _ in .failure(StoreError(.server, "unused")) })
    #expect(session.current == .signedOut)
    #expect(
      BucketStoreTests.kind { () throws(StoreError) in _ = try session.bearer(Call()) }
        == .sessionExpired)
  }

  @Test(arguments: ["", "{}", "[", "{\"access_token\":1}", "\u{0}\u{1}"])
  func aDamagedFileIsNoSession(text: String) throws {
    try File.replace(file, with: Array(text.utf8))
    let session = session(ScriptedTransport { _, _ in .failure(StoreError(.server, "unused")) })
    #expect(session.current == .signedOut)
  }

  @Test func aFileOpenToOthersIsRefused() throws {
    try keep("old", "r1", lives: 3_000)
    #expect(chmod(file, 0o644) == 0)
    let session = session(ScriptedTransport { _, _ in .failure(StoreError(.server, "unused")) })
    #expect(session.current == .signedOut)
    do throws(StoreError) {
      _ = try session.bearer(Call())
      Issue.record("a session open to others was used")
    } catch {
      #expect(error.message.contains("chmod 600"))
    }
  }

  @Test func manyThreadsRenewOnce() throws {
    try keep("old", "r1", lives: -1)
    let transport = ScriptedTransport { _, _ in
      usleep(50_000)
      return .success(Self.grant("new", "r2"))
    }
    let session = session(transport)
    let tokens = Locked<[String?]>([])
    let threads = try (0..<16).map { _ in
      try Platform.Thread(name: "renewer") {
        var token: String?
        do throws(StoreError) { token = try session.bearer(Call()).token } catch {}
        let result = token
        tokens.withLock { $0.append(result) }
      }
    }
    for thread in threads { thread.join() }
    #expect(tokens.withLock { $0 } == Array(repeating: "new", count: 16))
    #expect(transport.sent.count == 1)
  }

  @Test func thoseWhoWaitedShareHowTheRenewalEnded() throws {
    try keep("old", "r1", lives: -1)
    let transport = ScriptedTransport { _, _ in
      usleep(200_000)
      return .failure(StoreError(.timeout, "silence"))
    }
    let session = session(transport)
    let kinds = Locked<[StoreError.Kind?]>([])
    let threads = try (0..<8).map { _ in
      try Platform.Thread(name: "renewer") {
        let result = BucketStoreTests.kind { () throws(StoreError) in
          _ = try session.bearer(Call())
        }
        kinds.withLock { $0.append(result) }
      }
    }
    for thread in threads { thread.join() }
    #expect(kinds.withLock { $0 } == Array(repeating: .timeout, count: 8))
    #expect(transport.sent.count < 8)
  }

  @Test func twoSessionsOfOneFileRenewInTurn() throws {
    try keep("old", "r1", lives: -1)
    let transport = ScriptedTransport { request, _ in
      usleep(100_000)
      return request.text.contains("r1")
        ? .success(Self.grant("new", "r2"))
        : .success(.json(400, #"{"code":"refresh_token_already_used","message":"x"}"#))
    }
    let sessions = [session(transport), session(transport)]
    let tokens = Locked<[String]>([])
    let threads = try sessions.map { session in
      try Platform.Thread(name: "renewer") {
        do throws(StoreError) {
          let token = try session.bearer(Call()).token ?? "none"
          tokens.withLock { $0.append(token) }
        } catch {
          let kind = error.kind.rawValue
          tokens.withLock { $0.append(kind) }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(tokens.withLock { $0 } == ["new", "new"])
    #expect(transport.sent.count == 1)
  }

  @Test func aCallerWhoGivesUpStopsWaiting() throws {
    try keep("old", "r1", lives: -1)
    let holder = try SessionLock(file, Call())
    defer { holder.release() }
    let session = session(ScriptedTransport { _, _ in .success(Self.grant("new", "r2")) })
    let call = Call()
    let result = Locked<StoreError.Kind?>(nil)
    let thread = try Platform.Thread(name: "waiter") {
      let kind = BucketStoreTests.kind { () throws(StoreError) in _ = try session.bearer(call) }
      result.withLock { $0 = kind }
    }
    usleep(50_000)
    call.cancellation.cancel()
    #expect(thread.join(until: .now + .seconds(5)))
    #expect(result.withLock { $0 } == .cancelled)
    #expect(
      BucketStoreTests.kind { () throws(StoreError) in
        _ = try session.bearer(Call(timeout: .milliseconds(60)))
      } == .timeout)
  }

  @Test func anExpiredTokenIsRenewedInTheMiddleOfWork() throws {
    try keep("old", "r1", lives: 3_000)
    let transport = ScriptedTransport { request, _ in
      if request.url.contains("/auth/v1/") { return .success(Self.grant("new", "r2")) }
      return request.header("Authorization") == "Bearer new"
        ? .success(.object("hello"))
        : .success(
          .failure(
            400, "403", "Unauthorized", "\"exp\" claim timestamp check failed",
            code: "AccessDenied"))
    }
    let session = session(transport)
    let store = SupabaseStore(
      address: address, key: "anon", session: session, transport: transport)
    let sink = CollectingSink()
    _ = try store.get(
      GetRequest(object: ObjectName(bucket: "docs", key: "a")), into: sink, Call())
    #expect(sink.text == "hello")
    #expect(transport.sent.count == 3)
    #expect(transport.sent[0].header("apikey") == "anon")
    #expect(transport.sent[2].header("Authorization") == "Bearer new")
  }

  @Test func aFreshTokenThatIsRefusedIsNotRenewedForEver() throws {
    try keep("old", "r1", lives: 3_000)
    let transport = ScriptedTransport { request, index in
      request.url.contains("/auth/v1/")
        ? .success(Self.grant("new\(index)", "r\(index)"))
        : .success(
          .failure(400, "403", "Unauthorized", "\"exp\" claim timestamp check failed"))
    }
    let store = SupabaseStore(
      address: address, key: "anon", session: session(transport), transport: transport)
    #expect(
      BucketStoreTests.kind { () throws(StoreError) in
        _ = try store.info(ObjectName(bucket: "docs", key: "a"), Call())
      } == .sessionExpired)
    #expect(transport.sent.count == 3)
  }

  @Test func aSignInIsKept() throws {
    let transport = ScriptedTransport { _, _ in .success(Self.grant("first", "r1")) }
    let session = session(transport)
    try session.signIn(email: "ann@example.org", password: "secret", Call())
    #expect(session.current == .signedIn)
    #expect(try StoredSession(file: file).refreshToken == "r1")
    #expect(transport.sent[0].url.hasSuffix("/auth/v1/token?grant_type=password"))
    let refusing = ScriptedTransport { _, _ in
      .success(.json(400, #"{"code":400,"error_code":"invalid_credentials","msg":"Invalid"}"#))
    }
    #expect(
      BucketStoreTests.kind { () throws(StoreError) in
        try self.session(refusing).signIn(email: "a", password: "b", Call())
      } == .refused)
  }
}
