import Platform

extension Service {
  /// How long an upload URL is good, in seconds: a bare server's default.
  private static let uploadLife: Int64 = 60

  func signOne(_ exchange: Exchange) throws(Failure) -> Response {
    let body = try exchange.json()
    let life = try life(in: body)
    let caller = try self.caller(exchange)
    guard let found = world.find(exchange.bucket, exchange.key) else {
      throw .refused(.noSuchBucket)
    }
    try checkKey(exchange.key)
    guard let row = found.row,
      access(of: caller).allows(
        .select, bucket: exchange.bucket, key: row.key, owner: row.owner)
    else { throw .refused(.noSuchKey) }
    // The server decodes the path once more with a function that leaves the reserved signs
    // encoded, and signs that: such a key cannot be fetched when the client had encoded it.
    let sent = exchange.route.path.split(separator: "/", maxSplits: 3).last.map(String.init) ?? ""
    let signed = Self.decodeUnreserved(sent)
    return Response(json: [
      "signedURL": .string(
        "/object/sign/\(exchange.bucket)/\(signed)?token="
          + token(exchange.bucket + "/" + signed, scope: "download", life: life))
    ])
  }

  func signMany(_ exchange: Exchange) throws(Failure) -> Response {
    let body = try exchange.json()
    let life = try life(in: body)
    guard let paths = body["paths"]?.items?.compactMap(\.text), (1...1000).contains(paths.count)
    else { throw .refused(.schema("body must have required property 'paths'")) }
    let access = access(of: try caller(exchange))
    let bucket = exchange.bucket
    let present = world.contents.withLock { contents in
      let rows = contents.buckets[bucket]?.rows ?? [:]
      return paths.map { path in
        rows[ByteString(path)].map {
          access.allows(.select, bucket: bucket, key: $0.key, owner: $0.owner)
        } ?? false
      }
    }
    return Response(
      json: .array(
        zip(paths, present).map { path, isPresent in
          guard isPresent else {
            return [
              "error": "Either the object does not exist or you do not have access to it",
              "path": .string(path), "signedURL": .null,
            ]
          }
          let url = bucket + "/" + path
          return [
            "error": .null, "path": .string(path),
            "signedURL": .string(
              "/object/sign/\(url)?token=" + token(url, scope: "download", life: life)),
          ]
        }))
  }

  func signUpload(_ exchange: Exchange) throws(Failure) -> Response {
    let caller = try self.caller(exchange)
    let upsert = exchange.request.headers["x-upsert"] == "true"
    guard world.find(exchange.bucket, exchange.key) != nil else { throw .refused(.noSuchBucket) }
    try checkKey(exchange.key)
    try checkWrite(exchange.bucket, exchange.key, upsert: upsert, access: access(of: caller))
    let url = exchange.bucket + "/" + exchange.key.text
    let token = token(
      url, scope: "upload", life: Self.uploadLife,
      more: [JSON.Member("owner", .text(caller.subject)), JSON.Member("upsert", .bool(upsert))])
    return Response(json: [
      "url": .string("/object/upload/sign/\(url)?token=\(token)"), "token": .string(token),
    ])
  }

  func signedUpload(_ exchange: Exchange) throws(Failure) -> Response {
    let claims = try signedClaims(exchange)
    guard claims["scope"] == "upload" else {
      throw .refused(.signature("Token is not scoped for upload"))
    }
    let row = try store(
      exchange, upsert: claims["upsert"]?.flag ?? false, owner: claims["owner"]?.text,
      access: Access(bypasses: true, policies: [], subject: nil))
    return Response(json: ["Key": .string(exchange.bucket + "/" + row.key.text)])
  }

  func checkSignedToken(_ exchange: Exchange) throws(Failure) {
    guard try signedClaims(exchange)["scope"] != "upload" else {
      throw .refused(.signature("Token is not scoped for download"))
    }
  }

  /// When the token of a signed URL ends.
  func signedExpiry(_ exchange: Exchange) -> Timestamp? {
    do throws(Failure) {
      return try signedClaims(exchange)["exp"]?.whole.map { Timestamp(seconds: $0) }
    } catch {
      return nil
    }
  }

  private func signedClaims(_ exchange: Exchange) throws(Failure) -> JSON {
    guard let token = exchange.route.query["token"] else {
      throw .refused(.schema("querystring must have required property 'token'"))
    }
    let claims: JSON
    do throws(Token.Fault) {
      claims = try Token.verify(token, secret: world.keys.secret, now: world.now)
    } catch {
      throw .refused(.signedToken(error.rawValue))
    }
    guard claims["url"]?.text == exchange.bucket + "/" + exchange.key.text else {
      throw .refused(.signature("Invalid signature"))
    }
    return claims
  }

  private func life(in body: JSON) throws(Failure) -> Int64 {
    let life = body["expiresIn"].flatMap { $0.whole ?? $0.text.flatMap { Int64($0) } }
    guard let life, life >= 1 else {
      throw .refused(.schema("body must have required property 'expiresIn'"))
    }
    return life
  }

  private func token(
    _ url: String, scope: String, life: Int64, more: [JSON.Member] = []
  ) -> String {
    let now = world.now.unixSeconds
    return Token.sign(
      .object(
        [
          JSON.Member("url", .string(url)), JSON.Member("scope", .string(scope)),
          JSON.Member("iat", .integer(now)), JSON.Member("exp", .integer(now + life)),
        ] + more), secret: world.keys.secret)
  }

  /// Decodes all percent signs but those of the reserved characters, as decodeURI does.
  private static func decodeUnreserved(_ text: String) -> String {
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2,
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
        !";/?:@&=+$,#".utf8.contains(value)
      {
        result.append(value)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}
