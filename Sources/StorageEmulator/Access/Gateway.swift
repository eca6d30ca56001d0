import Platform

/// The gateway in front of the service: knows the keys of the project and what they stand for.
struct Gateway: Sendable {
  let keys: Keys
  let profile: Configuration.Profile

  /// The gateway's own refusal, the only 401 there is; nil when the request passes.
  ///
  /// A missing key is refused on the Auth surface only: public and signed URLs carry none.
  func refusal(_ request: Request, _ route: Route) -> Response? {
    guard route.isGateway else { return nil }
    if let key = request.headers["apikey"] {
      let known = [keys.anon, keys.service, keys.publishable, keys.secretKey].contains(key)
      if known || (profile != .hosted && route.name != .auth) { return nil }
      return Response(
        status: 401,
        json: [
          "message": "Invalid API key",
          "hint": "Double check your Supabase `anon` or `service_role` API key.",
        ])
    }
    guard route.name == .auth else { return nil }
    return Response(
      status: 401,
      json: [
        "message": "No API key found in request",
        "hint": "No `apikey` request header or url param was found.",
      ])
  }

  /// The bearer header that reaches the service.
  func authorization(_ request: Request, _ route: Route) -> String? {
    let given = request.headers["Authorization"]
    guard route.isGateway, let key = request.headers["apikey"] else { return given }
    if let given, !given.lowercased().hasPrefix("bearer sb_") { return given }
    switch key {
    case keys.publishable: return "Bearer " + keys.anon
    case keys.secretKey: return "Bearer " + keys.service
    default: return "Bearer " + key
    }
  }
}
