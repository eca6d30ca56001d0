import FoundationEssentials
import Platform

/// The sign-in calls of a project: the password grant and the refresh grant.
struct SupabaseAuth: Sendable {
  /// Why a refresh failed.
  enum Failure: Error {
    /// The session is over for good; the server's words.
    case ended(String)
    /// Anything else; the session may still be good.
    case store(StoreError)
  }

  private let address: SupabaseAddress
  private let transport: any HTTPTransport
  private let headers: [(name: String, value: String)]

  init(
    address: SupabaseAddress, key: String, transport: any HTTPTransport,
    headers: [(name: String, value: String)]
  ) {
    self.address = address
    self.transport = transport
    self.headers = SupabaseHeaders.identity(key: key, token: nil, extra: headers)
  }

  func signIn(email: String, password: String, _ call: Call) throws(StoreError) -> StoredSession {
    let response = try token("password", ["email": email, "password": password], call)
    guard response.status == 200 else {
      guard let body = SupabaseErrorBody(response.body), (400..<500).contains(response.status),
        response.status != 429
      else { throw SupabaseErrors.verdict(on: response, reading: false).error }
      throw StoreError(
        .refused, SupabaseErrors.line("the sign-in was refused: \(body.message ?? body.code ?? "")")
      )
    }
    return try session(response, former: nil)
  }

  /// Trades a refresh token for a new pair. The old one is consumed.
  func refresh(_ stored: StoredSession, _ call: Call) throws(Failure) -> StoredSession {
    let response: HTTPResponse
    do throws(StoreError) {
      response = try token("refresh_token", ["refresh_token": stored.refreshToken], call)
      if response.status == 200 { return try session(response, former: stored) }
    } catch {
      throw .store(error)
    }
    if let body = SupabaseErrorBody(response.body), response.status < 500,
      [body.code, body.error].contains(where: { $0.map(Self.endings.contains) ?? false })
    {
      throw .ended(SupabaseErrors.line(body.message ?? body.code ?? body.error ?? ""))
    }
    let error = SupabaseErrors.verdict(on: response, reading: false).error
    throw .store(
      StoreError(
        // Too many refreshes at once (409) is no conflict of the call's object.
        response.status == 409 ? .server : error.kind,
        "the session was not renewed: \(error.message)"))
  }

  /// The errors of the refresh grant after which only a new sign-in helps.
  private static let endings: Set<String> = [
    "refresh_token_not_found", "refresh_token_already_used", "session_not_found",
    "session_expired", "validation_failed", "user_banned", "user_not_found", "invalid_grant",
    "invalid_credentials",
  ]

  private func token(_ grant: String, _ body: [String: String], _ call: Call) throws(StoreError)
    -> HTTPResponse
  {
    let bytes: Data
    do {
      bytes = try JSONEncoder().encode(body)
    } catch {
      throw StoreError(.refused, "the credentials cannot be written as JSON")
    }
    return try transport.perform(
      HTTPRequest(
        "POST", "\(address.auth)/token?grant_type=\(grant)",
        headers: headers + [("Content-Type", "application/json")], body: Array(bytes)),
      into: nil, call)
  }

  private func session(_ response: HTTPResponse, former: StoredSession?) throws(StoreError)
    -> StoredSession
  {
    let grant: Grant
    do {
      grant = try JSONDecoder().decode(Grant.self, from: Data(response.body))
    } catch {
      throw StoreError(.server, "the sign-in's answer is not the server's own")
    }
    guard !grant.accessToken.isEmpty, !grant.refreshToken.isEmpty,
      let userID = grant.user?.id ?? former?.userID
    else { throw StoreError(.server, "the sign-in's answer lacks a token or the user") }
    // By this device's clock: what counts is how long from now, and clocks differ.
    let life = grant.expiresIn.map { Span.seconds($0) }
    let expires =
      life.map { Timestamp.now + $0 }
      ?? grant.expiresAt.map { Timestamp(seconds: $0) } ?? Timestamp.now + .seconds(3_600)
    return StoredSession(
      accessToken: grant.accessToken, refreshToken: grant.refreshToken, expires: expires,
      userID: userID)
  }

  private struct Grant: Decodable {
    var accessToken: String
    var refreshToken: String
    var expiresIn: Double?
    var expiresAt: Int64?
    var user: User?

    struct User: Decodable {
      var id: String
    }

    enum CodingKeys: String, CodingKey {
      case accessToken = "access_token"
      case refreshToken = "refresh_token"
      case expiresIn = "expires_in"
      case expiresAt = "expires_at"
      case user
    }
  }
}
