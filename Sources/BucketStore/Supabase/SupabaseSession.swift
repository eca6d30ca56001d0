package import Platform

/// Whose eyes a project is seen with: the source of the token that each call carries.
///
/// Without a session file the project's key is the only identity. With one, a user is signed in,
/// and the access token is renewed by the refresh token of the file. Refresh tokens are good once,
/// and one used twice ends the session, so there is one refresher at a time: one thread of this
/// process, under flock(2) on `<file>.lock` between processes; and the file is replaced, durably,
/// before the new token is used. What is sent is always the file's refresh token: should a
/// replacement fail, the server takes the direct parent of the active token once more.
///
/// It is one user's: who signs in as somebody else, and so replaces the file, does not make this
/// session that user's. Whatever was meant to be done as the first one would else be done as the
/// other. It counts as signed out until the first one is back.
///
/// Guarded by one lock, never held while sending or while touching a file.
package final class SupabaseSession: Sendable {
  /// A token to send, and whether it is a user's (and can be renewed) or the key's.
  struct Bearer: Sendable, Equatable {
    /// The value after `Bearer `; nil sends no `Authorization`: the gateway adds what the key is.
    var token: String?
    var isUser: Bool
  }

  fileprivate struct State {
    /// Whose session this is; nil until there was one. Nobody else's is taken up from the file.
    var user: String?
    var stored: StoredSession?
    var storedProblem: String?
    /// The server refused the refresh token of this session, and why.
    var ended: (refreshToken: String, reason: String)?
    /// The server says that this token has expired, whatever its time says.
    var expired: String?
    var isRefreshing = false
    /// Counts refreshes that ended, so that those who waited for one share how it ended.
    var refreshes = 0
    var lastFailure: StoreError?
    /// After a refusal that is not for ever: not before this moment.
    var notBefore: Instant?
  }

  private let state: Locked<State>
  private let file: String?
  private let key: String
  private let auth: SupabaseAuth

  /// - Parameters:
  ///   - address: the project.
  ///   - key: the project's publishable (or legacy anonymous) key.
  ///   - file: where the user's session is kept, mode 0600; nil when the key is the identity.
  package init(
    address: SupabaseAddress, key: String, file: String?, transport: any HTTPTransport,
    headers: [(name: String, value: String)] = []
  ) {
    self.key = key
    self.file = file
    auth = SupabaseAuth(address: address, key: key, transport: transport, headers: headers)
    state = Locked(State())
    readFile()
  }

  /// Whose eyes the project is seen with now. Never waits.
  package var current: SessionState {
    guard file != nil else { return .keyOnly }
    return state.withLock { state in
      guard let stored = state.stored else { return .signedOut }
      if state.ended?.refreshToken == stored.refreshToken { return .signedOut }
      return state.isUsable(stored, for: .zero) ? .signedIn : .restoring
    }
  }

  /// The user whose session this is, also once it has ended; nil when the key is the identity, and
  /// while nobody was signed in yet.
  package var userID: String? { state.withLock { $0.user } }

  /// The token for a call, renewed first when it has expired or is about to.
  ///
  /// - Throws: `StoreError`: `sessionExpired` when nobody is signed in or the session has ended;
  ///   what the renewal met when the old token is of no use any more.
  func bearer(_ call: Call) throws(StoreError) -> Bearer {
    guard file != nil else {
      return Bearer(token: Self.isToken(key) ? key : nil, isUser: false)
    }
    let (usable, lasting) = state.withLock { state -> (String?, Bool) in
      guard let stored = state.stored, state.isUsable(stored, for: .zero) else {
        return (nil, false)
      }
      return (stored.accessToken, state.isUsable(stored, for: Self.margin) || state.isRefreshing)
    }
    guard let usable else {
      return Bearer(token: try renew(after: nil, refused: false, call), isUser: true)
    }
    if lasting { return Bearer(token: usable, isUser: true) }
    do throws(StoreError) {
      return Bearer(token: try renew(after: usable, refused: false, call), isUser: true)
    } catch {
      if error.kind == .cancelled || current == .signedOut { throw error }
      return Bearer(token: usable, isUser: true)
    }
  }

  /// What is sent with every call is of no use any more, and nothing can renew it.
  static let keyHasExpired = StoreError(
    .refused, "the project's key, or the access token in its place, has expired: take a new one")

  /// Another token than the one used: a newer one that is there already, or a renewed one.
  ///
  /// - Parameters:
  ///   - used: the token to replace; nil when there was none to send.
  ///   - refused: the server has said that it has expired, whatever its time says.
  /// - Throws: `StoreError`, as `bearer`.
  func renew(after used: String?, refused: Bool, _ call: Call) throws(StoreError) -> String {
    guard let file else {
      throw Self.keyHasExpired
    }
    let deadline = call.deadline
    var seen: Int?
    let turn = state.wait(until: deadline, call.cancellation) { state -> Turn? in
      if let stored = state.stored, stored.accessToken != used, state.isUsable(stored, for: .zero) {
        return .renewed(stored.accessToken)
      }
      if let seen, seen != state.refreshes, let failure = state.lastFailure {
        return .failed(failure)
      }
      if refused, state.stored?.accessToken == used { state.expired = used }
      seen = state.refreshes
      if state.isRefreshing { return nil }
      if let failure = state.lastFailure, let pause = state.notBefore, Instant.now < pause {
        return .failed(failure)
      }
      state.isRefreshing = true
      return .ours
    }
    switch turn {
    case nil:
      throw call.cancellation.isCancelled
        ? Self.cancelled : StoreError(.timeout, "the session was not renewed in time")
    case .failed(let error): throw error
    case .renewed(let token): return token
    case .ours: break
    }
    let result: Result<StoredSession, StoreError>
    do throws(StoreError) {
      result = .success(try refresh(file, after: used, call))
    } catch {
      result = .failure(error)
    }
    state.withLock { state in
      state.isRefreshing = false
      state.refreshes += 1
      switch result {
      case .success(let session):
        state.adopt(session)
        state.lastFailure = nil
        state.notBefore = nil
      case .failure(let error):
        // A caller who stopped waiting says nothing of the server to those who wait on.
        state.lastFailure = error.kind == .cancelled ? nil : error
        let isEarly = state.stored.map { state.isUsable($0, for: .zero) } ?? false
        state.notBefore =
          isEarly || error.kind == .throttled || error.kind == .server
          ? Instant.now + Self.pause : nil
      }
    }
    state.wakeAll()
    return try result.get().accessToken
  }

  /// Signs a user in and keeps the session in the file. This session is that user's from now on.
  ///
  /// - Throws: `StoreError`: `refused` for wrong credentials; `server` when the file cannot be
  ///   written.
  package func signIn(email: String, password: String, _ call: Call) throws(StoreError) {
    guard let file else {
      throw StoreError(.unsupported, "this session has no file to be kept in")
    }
    let session = try auth.signIn(email: email, password: password, call)
    let lock = try lock(file, call)
    defer { lock.release() }
    do throws(Errno) {
      try session.save(file)
    } catch {
      throw StoreError(.server, "\(file): the session cannot be kept: \(error)")
    }
    state.withLock { state in
      state.user = session.userID
      state.adopt(session)
    }
  }

  private enum Turn: Sendable {
    case ours
    case renewed(String)
    case failed(StoreError)
  }

  /// Renews under the lock between processes. Runs on one thread at a time.
  private func refresh(_ file: String, after used: String?, _ call: Call) throws(StoreError)
    -> StoredSession
  {
    // Without a session there is nothing to lock, and perhaps no folder to hold the lock.
    _ = try readable()
    let lock = try lock(file, call)
    defer { lock.release() }
    let stored = try readable()
    if stored.accessToken != used, state.withLock({ $0.isUsable(stored, for: .zero) }) {
      return stored
    }
    do throws(SupabaseAuth.Failure) {
      let fresh = try auth.refresh(stored, call)
      do throws(Errno) {
        try fresh.save(file)
      } catch {
        Log.error("\(file): the renewed session cannot be kept: \(error)")
      }
      return fresh
    } catch {
      switch error {
      case .ended(let words):
        let reason = "the session has ended: sign in again (\(words))"
        state.withLock { $0.ended = (stored.refreshToken, reason) }
        throw StoreError(.sessionExpired, reason)
      case .store(let error): throw error
      }
    }
  }

  /// The session in the file, read again: another process may have renewed or replaced it.
  private func readable() throws(StoreError) -> StoredSession {
    readFile()
    let (stored, problem, ended) = state.withLock { ($0.stored, $0.storedProblem, $0.ended) }
    guard let stored else {
      throw StoreError(.sessionExpired, problem ?? "nobody is signed in: sign in first")
    }
    if let ended, ended.refreshToken == stored.refreshToken {
      throw StoreError(.sessionExpired, ended.reason)
    }
    return stored
  }

  private func lock(_ file: String, _ call: Call) throws(StoreError) -> SessionLock {
    do throws(Errno) {
      return try SessionLock(file, call)
    } catch {
      switch error {
      case .interrupted: throw Self.cancelled
      case .timedOut:
        throw StoreError(.timeout, "another program holds the session's lock, \(file).lock")
      default: throw StoreError(.server, "\(file).lock: \(error)")
      }
    }
  }

  private func readFile() {
    guard let file else { return }
    do throws(StoredSession.Problem) {
      let stored = try StoredSession(file: file)
      state.withLock { state in
        guard state.user == nil || state.user == stored.userID else {
          state.stored = nil
          state.storedProblem = "somebody else has signed in: this needs the user who was before"
          return
        }
        if state.stored != stored { state.adopt(stored) }
      }
    } catch {
      state.withLock { state in
        state.stored = nil
        state.storedProblem = error.sentence
      }
    }
  }

  /// A key of the older kind is a token itself: three parts, the first of them JSON in base64.
  private static func isToken(_ key: String) -> Bool {
    key.hasPrefix("eyJ") && key.utf8.count { $0 == UInt8(ascii: ".") } == 2
  }

  private static let cancelled = StoreError(.cancelled, "stopped by the caller")
  /// A token with less than this to live is renewed ahead of time.
  private static let margin = Span.seconds(90)
  private static let pause = Span.seconds(2)
}

extension SupabaseSession.State {
  fileprivate func isUsable(_ session: StoredSession, for span: Span) -> Bool {
    session.accessToken != expired && Timestamp.now + span < session.expires
  }

  fileprivate mutating func adopt(_ session: StoredSession) {
    user = user ?? session.userID
    stored = session
    storedProblem = nil
    if ended?.refreshToken != session.refreshToken { ended = nil }
    if expired != session.accessToken { expired = nil }
  }
}
