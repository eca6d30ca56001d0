import Platform

extension Service {
  /// A refusal of the Auth surface, which gives honest statuses.
  private struct AuthRefusal: Error {
    let status: Int
    let code: String
    let message: String
    var response: (Request) -> Response {
      { request in
        let dated = request.headers["X-Supabase-Api-Version"].map { $0 >= "2024-01-01" } ?? false
        var response = Response(
          status: status,
          json: dated
            ? ["code": .string(code), "message": .string(message)]
            : [
              "code": .integer(Int64(status)), "error_code": .string(code),
              "msg": .string(message),
            ])
        response.headers["x-sb-error-code"] = code
        return response
      }
    }

    static let credentials = AuthRefusal(
      status: 400, code: "invalid_credentials", message: "Invalid login credentials")
    static let grant = AuthRefusal(
      status: 400, code: "invalid_credentials", message: "unsupported_grant_type")
    static let tokenNotFound = AuthRefusal(
      status: 400, code: "refresh_token_not_found",
      message: "Invalid Refresh Token: Refresh Token Not Found")
    static let tokenUsed = AuthRefusal(
      status: 400, code: "refresh_token_already_used",
      message: "Invalid Refresh Token: Already Used")
    static let notSignedIn = AuthRefusal(
      status: 401, code: "no_authorization",
      message: "This endpoint requires a valid Bearer token")
    static let sessionNotFound = AuthRefusal(
      status: 403, code: "session_not_found",
      message: "Session from session_id claim in JWT does not exist")
    static let noAnonymous = AuthRefusal(
      status: 422, code: "anonymous_provider_disabled",
      message: "Anonymous sign-ins are disabled")
    static let noSignups = AuthRefusal(
      status: 422, code: "signup_disabled", message: "Signups not allowed for this instance")

    static func token(_ message: String) -> AuthRefusal {
      AuthRefusal(
        status: 403, code: "bad_jwt",
        message: "invalid JWT: unable to parse or verify signature, \(message)")
    }

    static func validation(_ message: String) -> AuthRefusal {
      AuthRefusal(status: 400, code: "validation_failed", message: message)
    }
  }

  func auth(_ exchange: Exchange, _ path: String) throws(Failure) -> Response {
    let bytes = try exchange.body.all(limit: 1 << 20)
    let body = UploadSource.metadata(bytes) ?? [:]
    do throws(AuthRefusal) {
      switch (exchange.request.method, path) {
      case ("POST", "token"):
        switch exchange.route.query["grant_type"] {
        case "password": return try signIn(body)
        case "refresh_token": return try refresh(body)
        default: throw .grant
        }
      case ("POST", "signup"): throw body["email"] == nil ? .noAnonymous : .noSignups
      case ("POST", "logout"): return try signOut(exchange)
      case ("GET", "user"): return Response(json: Self.json(try signedIn(exchange).user))
      case ("GET", "health"):
        return Response(json: ["version": "v2.196.0", "name": "GoTrue"])
      case ("GET", "settings"):
        return Response(json: ["external": ["email": true], "disable_signup": true])
      case ("GET", ".well-known/jwks.json"): return Response(json: ["keys": []])
      default: return Response(status: 404, json: ["code": 404, "msg": "404 page not found"])
      }
    } catch {
      return error.response(exchange.request)
    }
  }

  private func signIn(_ body: JSON) throws(AuthRefusal) -> Response {
    guard let email = body["email"]?.text, let password = body["password"]?.text else {
      throw .validation("missing email or phone")
    }
    return try world.contents.withLock { (contents) throws(AuthRefusal) in
      guard
        let user = contents.policies.users.first(where: {
          $0.email.lowercased() == email.lowercased() && $0.password == password
        })
      else { throw .credentials }
      let session = Session(
        id: Identifier.uuid(), user: user.id, active: Self.refreshToken(), parent: nil)
      contents.setSession(session)
      return granted(session, user, contents)
    }
  }

  /// Each refresh consumes the token. A used one is taken again within the reuse interval, and
  /// when it is the direct parent of the active one; any other reuse revokes the session.
  private func refresh(_ body: JSON) throws(AuthRefusal) -> Response {
    guard let token = body["refresh_token"]?.text, !token.isEmpty else {
      throw .validation("refresh_token required")
    }
    let outcome = world.contents.withLock { contents -> Result<Response, AuthRefusal> in
      let held = contents.sessions.values.first {
        $0.active == token || $0.used[token] != nil
      }
      guard var session = held,
        let user = contents.policies.users.first(where: { $0.id == session.user })
      else { return .failure(.tokenNotFound) }
      let now = contents.now
      if session.active == token {
        session.used[token] = now
        session.parent = token
        session.active = Self.refreshToken()
        contents.setSession(session)
        return .success(granted(session, user, contents))
      }
      let age = session.used[token].map { now.since($0) } ?? .zero
      if session.parent == token || !(.seconds(Double(contents.reuseInterval)) < age) {
        return .success(granted(session, user, contents))
      }
      contents.removeSessions([session.id])
      return .failure(.tokenUsed)
    }
    switch outcome {
    case .success(let response): return response
    case .failure(let refusal): throw refusal
    }
  }

  private func signOut(_ exchange: Exchange) throws(AuthRefusal) -> Response {
    let (session, user) = try signedIn(exchange)
    let scope = exchange.route.query["scope"] ?? "global"
    world.contents.withLock { contents in
      let ended = contents.sessions.values.filter { held in
        held.user == user.id
          && (scope == "global" || (scope == "local") == (held.id == session))
      }
      contents.removeSessions(ended.map(\.id))
    }
    return Response(status: 204)
  }

  /// The session and user of the bearer; unlike Storage, this looks at the session itself.
  private func signedIn(
    _ exchange: Exchange
  ) throws(AuthRefusal) -> (session: String, user: Policies.User) {
    guard let header = exchange.authorization, header.lowercased().hasPrefix("bearer ") else {
      throw .notSignedIn
    }
    let claims: JSON
    do throws(Token.Fault) {
      claims = try Token.verify(
        String(header.dropFirst(7)), secret: world.keys.secret, now: world.now)
    } catch {
      throw .token(error == .expired ? "token is expired" : error.rawValue)
    }
    guard let id = claims["session_id"]?.text else { throw .token("missing sub claim") }
    let found = world.contents.withLock { contents in
      contents.sessions[id].flatMap { session in
        contents.policies.users.first { $0.id == session.user }
      }
    }
    guard let found else { throw .sessionNotFound }
    return (id, found)
  }

  private func granted(
    _ session: Session, _ user: Policies.User, _ contents: Contents
  ) -> Response {
    let now = contents.now.unixSeconds
    let life = contents.tokenLife
    let claims: JSON = [
      "iss": "http://127.0.0.1/auth/v1", "sub": .string(user.id), "aud": "authenticated",
      "exp": .integer(now + life), "iat": .integer(now), "email": .string(user.email),
      "phone": "", "app_metadata": ["provider": "email", "providers": ["email"]],
      "user_metadata": [:], "role": "authenticated", "aal": "aal1",
      "amr": [["method": "password", "timestamp": .integer(now)]],
      "session_id": .string(session.id), "is_anonymous": false,
    ]
    return Response(json: [
      "access_token": .string(Token.sign(claims, secret: world.keys.secret)),
      "token_type": "bearer", "expires_in": .integer(life), "expires_at": .integer(now + life),
      "refresh_token": .string(session.active), "user": Self.json(user),
    ])
  }

  private static func json(_ user: Policies.User) -> JSON {
    [
      "id": .string(user.id), "aud": "authenticated", "role": "authenticated",
      "email": .string(user.email), "phone": "",
      "app_metadata": ["provider": "email", "providers": ["email"]], "user_metadata": [:],
      "identities": [], "is_anonymous": false,
    ]
  }

  /// Twelve lower-case letters and digits, as the server's first format.
  private static func refreshToken() -> String {
    let digits = Array("abcdefghijklmnopqrstuvwxyz0123456789".utf8)
    return String(
      decoding: Identifier.random(12).map { digits[Int($0) % digits.count] }, as: UTF8.self)
  }
}
