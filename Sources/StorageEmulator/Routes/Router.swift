import Platform

/// Finds the route of a request; the key in a path is decoded here, once.
struct Router: Sendable {
  let profile: Configuration.Profile

  func route(_ request: Request) -> Route {
    // Servers of the old framework cut the query at a bare `;` too.
    let cut = request.target.firstIndex { $0 == "?" || (profile == .old && $0 == ";") }
    var path = request.target[..<(cut ?? request.target.endIndex)]
    let query = Query(
      cut.map { request.target[request.target.index(after: $0)...] } ?? "")
    var isGateway = false
    var isAuth = false
    if path.hasPrefix("/storage/v1/") {
      path = path.dropFirst("/storage/v1".count)
      isGateway = true
    } else if path.hasPrefix("/auth/v1/") {
      path = path.dropFirst("/auth/v1/".count)
      (isGateway, isAuth) = (true, true)
    }
    var route = Route(
      call: .unknown, name: .other, isGateway: isGateway, bucket: nil, key: nil, query: query,
      path: isAuth ? "/" + path : String(path))
    if isAuth {
      route.name = .auth
      route.call = .auth(String(path))
      return route
    }
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    find(request.method, Array(segments), &route)
    return route
  }

  private func find(_ method: String, _ segments: [Substring], _ route: inout Route) {
    switch segments.first {
    case "object": findObject(method, Array(segments.dropFirst()), &route)
    case "bucket": findBucket(method, Array(segments.dropFirst()), &route)
    case "upload" where profile != .old: findUpload(method, Array(segments.dropFirst()), &route)
    case "status" where segments.count == 1: route.call = .status
    case "health" where segments.count == 1: route.call = .health
    case "version" where segments.count == 1: route.call = .version
    default: break
    }
  }

  private func findBucket(_ method: String, _ rest: [Substring], _ route: inout Route) {
    route.name = .bucket
    if rest.isEmpty || rest == [""] {
      if method == "GET" { route.call = .buckets }
      if method == "POST" { route.call = .createBucket }
      return
    }
    let call: Route.Call? =
      switch (method, rest.count) {
      case ("GET", 1): .bucket
      case ("PUT", 1): .updateBucket
      case ("DELETE", 1): .deleteBucket
      case ("POST", 2) where rest[1] == "empty": .emptyBucket
      default: nil
      }
    if let call { setBucket(rest[0], call, &route) }
  }

  private func findObject(_ method: String, _ rest: [Substring], _ route: inout Route) {
    let reads = method == "GET" || method == "HEAD"
    switch (method, rest.first) {
    case (_, "authenticated") where reads:
      set(rest.dropFirst(), .object, .download(.authenticated), &route)
    case (_, "public") where reads: set(rest.dropFirst(), .object, .download(.anyone), &route)
    case (_, "sign") where reads: set(rest.dropFirst(), .object, .download(.signed), &route)
    case (_, "info") where reads && profile == .old, ("POST", "list-v2") where profile == .old:
      break
    case (_, "info") where reads: findInfo(rest.dropFirst(), &route)
    case ("POST", "list") where rest.count == 2:
      route.name = .list
      setBucket(rest[1], .listVersion1, &route)
    case ("POST", "list-v2") where rest.count == 2:
      route.name = .list
      setBucket(rest[1], .listVersion2, &route)
    case ("POST", "sign") where rest.count == 2:
      route.name = .sign
      setBucket(rest[1], .signMany, &route)
    case ("POST", "sign"): set(rest.dropFirst(), .sign, .signOne, &route)
    case ("POST", "upload") where rest.dropFirst().first == "sign":
      set(rest.dropFirst(2), .sign, .signUpload, &route)
    case ("PUT", "upload") where rest.dropFirst().first == "sign":
      set(rest.dropFirst(2), .upload, .signedUpload, &route)
    case ("POST", "move") where rest.count == 1: (route.name, route.call) = (.move, .move)
    case ("POST", "copy") where rest.count == 1: (route.name, route.call) = (.copy, .copy)
    case ("DELETE", let bucket?) where rest.count == 1:
      route.name = .remove
      setBucket(bucket, .removeMany, &route)
    case ("DELETE", _): set(rest[...], .remove, .removeOne, &route)
    case ("POST", _), ("PUT", _): set(rest[...], .upload, .upload, &route)
    case (_, _) where reads: set(rest[...], .object, .download(.lenient), &route)
    default: break
    }
  }

  private func findUpload(_ method: String, _ rest: [Substring], _ route: inout Route) {
    guard rest.first == "resumable", rest.count <= 2 else { return }
    let id = rest.dropFirst().first.map(String.init) ?? ""
    switch (method, id.isEmpty) {
    case ("OPTIONS", _): route.call = .resumableOptions
    case ("POST", true): route.call = .beginResumable
    case ("HEAD", false): route.call = .resumable(.tell, id)
    case ("PATCH", false): route.call = .resumable(.append, id)
    case ("DELETE", false): route.call = .resumable(.discard, id)
    default: return
    }
    route.name = .tus
    if let place = ResumableUpload.place(of: id) { (route.bucket, route.key) = place }
  }

  private func findInfo(_ rest: ArraySlice<Substring>, _ route: inout Route) {
    switch rest.first {
    case "authenticated": set(rest.dropFirst(), .info, .info(.authenticated), &route)
    case "public": set(rest.dropFirst(), .info, .info(.anyone), &route)
    default: set(rest, .info, .info(.lenient), &route)
    }
  }

  /// A bucket and, behind the next slash, a key.
  private func set(
    _ rest: ArraySlice<Substring>, _ name: Route.Name, _ call: Route.Call, _ route: inout Route
  ) {
    guard rest.count > 1, let bucket = rest.first else { return }
    route.name = name
    setBucket(bucket, call, &route)
    guard case .unknown = route.call else {
      let text = rest.dropFirst().joined(separator: "/")
      if let key = Percent.decode(text.utf8), key.string != nil {
        route.key = key
      } else {
        route.call = .malformed
      }
      return
    }
  }

  private func setBucket(_ segment: Substring, _ call: Route.Call, _ route: inout Route) {
    guard let bucket = Percent.decode(segment.utf8)?.string else {
      route.call = .malformed
      return
    }
    // The router's own bound on a path parameter.
    guard bucket.utf8.count <= 100 else { return }
    route.bucket = bucket
    route.call = call
  }
}
