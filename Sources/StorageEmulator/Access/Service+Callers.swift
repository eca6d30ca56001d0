import Platform

extension Service {
  /// The caller of a protected route.
  ///
  /// - Throws: what the server says to a missing header, a bad token and an expired one.
  func caller(_ exchange: Exchange) throws(Failure) -> Caller {
    guard let header = exchange.authorization else {
      throw .refused(.schema("headers must have required property 'authorization'"))
    }
    do throws(Token.Fault) {
      return try verified(header)
    } catch {
      throw .refused(.denied(error.rawValue))
    }
  }

  /// The caller of a lenient route: any trouble with the token makes it nobody.
  func lenientCaller(_ exchange: Exchange) -> Caller {
    guard let header = exchange.authorization else { return .nobody }
    do throws(Token.Fault) {
      return try verified(header)
    } catch {
      return .nobody
    }
  }

  func access(of caller: Caller) -> Access {
    world.contents.withLock { $0.policies.access(of: caller) }
  }

  private func verified(_ header: String) throws(Token.Fault) -> Caller {
    let token = header.lowercased().hasPrefix("bearer ") ? String(header.dropFirst(7)) : header
    let claims = try Token.verify(token, secret: world.keys.secret, now: world.now)
    return Caller(
      role: claims["role"]?.text ?? "anon", subject: claims["sub"]?.text, isAuthenticated: true)
  }
}
