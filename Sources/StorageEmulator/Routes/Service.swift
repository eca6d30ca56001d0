import Platform

/// Answers the calls of the Storage and Auth surfaces.
struct Service: Sendable {
  let world: World

  var profile: Configuration.Profile { world.configuration.profile }

  /// What a route needs to know of its request.
  struct Exchange {
    let request: Request
    let route: Route
    let body: RequestBody
    /// What the bearer header holds once the gateway has done its mapping.
    let authorization: String?
    let effect: Fault.Effect?

    var isHead: Bool { request.method == "HEAD" }
  }

  /// The answer to one request; refusals of the server are answers too.
  ///
  /// - Throws: `disconnected` only.
  func answer(
    _ request: Request, _ route: Route, _ body: RequestBody, _ effect: Fault.Effect?
  ) throws(Failure) -> Response {
    var response: Response
    do throws(Failure) {
      response = try respond(request, route, body, effect)
    } catch {
      switch error {
      case .refused(let refusal): response = answer(refusal, request, route)
      case .disk(let errno):
        Log.error("\(request.method) \(request.target): \(errno)")
        response = Refusal.internalError.response(hidesCode: false)
      case .disconnected: throw error
      }
    }
    if route.isGateway, world.isHosted {
      response.headers["Access-Control-Allow-Origin"] = "*"
      response.headers["sb-gateway-version"] = "1"
      response.headers["sb-request-id"] = Identifier.uuid()
    }
    return response
  }

  private func answer(_ refusal: Refusal, _ request: Request, _ route: Route) -> Response {
    if route.name == .tus { return refusal.resumableResponse(hidesCode: profile == .old) }
    // A failed HEAD of an object tells nothing, whatever failed.
    if request.method == "HEAD", route.key != nil { return Response(status: 400) }
    var response = refusal.response(hidesCode: profile == .old)
    if refusal.error == Refusal.blobMissing.error {
      response.headers["Cache-Control"] = "no-store"
    }
    return response
  }

  private func respond(
    _ request: Request, _ route: Route, _ body: RequestBody, _ effect: Fault.Effect?
  ) throws(Failure) -> Response {
    if case .malformed = route.call {
      throw .refused(.schema("'\(route.path)' is not a valid url component"))
    }
    let gateway = Gateway(keys: world.keys, profile: profile)
    if let refused = gateway.refusal(request, route) { return refused }
    let exchange = Exchange(
      request: request, route: route, body: body,
      authorization: gateway.authorization(request, route), effect: effect)
    switch route.call {
    case .download(let reader): return try download(exchange, reader)
    case .info(let reader): return try info(exchange, reader)
    case .listVersion1: return try listVersion1(exchange)
    case .listVersion2: return try listVersion2(exchange)
    case .upload: return try upload(exchange)
    case .removeOne: return try removeOne(exchange)
    case .removeMany: return try removeMany(exchange)
    case .move: return try move(exchange)
    case .copy: return try copy(exchange)
    case .signOne: return try signOne(exchange)
    case .signMany: return try signMany(exchange)
    case .signUpload: return try signUpload(exchange)
    case .signedUpload: return try signedUpload(exchange)
    case .beginResumable: return try beginResumable(exchange)
    case .resumable(let what, let id): return try resumable(exchange, what, id)
    case .resumableOptions: return resumableOptions()
    case .buckets: return try buckets(exchange)
    case .bucket: return try bucket(exchange)
    case .createBucket: return try createBucket(exchange)
    case .updateBucket: return try updateBucket(exchange)
    case .emptyBucket: return try emptyBucket(exchange)
    case .deleteBucket: return try deleteBucket(exchange)
    case .auth(let path): return try auth(exchange, path)
    case .status: return Response()
    case .health: return Response(json: ["healthy": true])
    case .version:
      return Response(
        headers: Headers([(name: "Content-Type", value: "text/plain; charset=utf-8")]),
        body: .bytes(Array("1.70.6".utf8)))
    case .unknown, .malformed: throw .refused(.noRoute(request.method, route.path))
    }
  }
}

extension Service.Exchange {
  /// The bucket in the path.
  var bucket: String { route.bucket ?? "" }

  /// The key in the path.
  var key: ByteString { route.key ?? "" }

  /// The JSON object in the body.
  ///
  /// - Parameter isRequired: whether a body must be there; an empty object stands for none.
  func json(isRequired: Bool = true) throws(Failure) -> JSON {
    let bytes = try body.all(limit: 1 << 20)
    if bytes.isEmpty, !isRequired { return [:] }
    let json: JSON
    do throws(JSON.Malformed) {
      json = try JSON(reading: bytes)
    } catch {
      throw .refused(.schema("body must be object"))
    }
    guard json.isObject else { throw .refused(.schema("body must be object")) }
    return json
  }

  func text(_ name: String, in body: JSON) throws(Failure) -> String {
    guard let text = body[name]?.text else {
      throw .refused(.schema("body must have required property '\(name)'"))
    }
    return text
  }
}
