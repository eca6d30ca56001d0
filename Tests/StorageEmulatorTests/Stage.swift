import Platform
import StorageEmulator
import Testing

/// A running emulator with a bucket `docs`, and calls to it over real HTTP.
struct Stage {
  let emulator: StorageEmulator
  let client: RawClient

  static let ann = "ann@example.org"
  static let bob = "bob@example.org"

  init(_ configuration: Configuration = Configuration()) throws {
    emulator = try StorageEmulator(configuration)
    emulator.createBucket("docs")
    client = RawClient(port: try emulator.start())
  }

  /// Ann may do what is given, in every bucket; Bob nothing.
  static func withUsers(
    _ policies: [Policies.Policy], profile: Configuration.Profile = .hosted, data: String? = nil
  ) throws -> Stage {
    try Stage(
      Configuration(
        profile: profile, data: data,
        policies: Policies(users: [
          Policies.User(email: ann, password: "a", policies: policies),
          Policies.User(email: bob, password: "b", policies: []),
        ])))
  }

  var service: [(String, String)] { [("Authorization", "Bearer " + emulator.serviceKey)] }
  var anonymous: [(String, String)] { [("Authorization", "Bearer " + emulator.anonKey)] }

  /// The bearer header of a user, signed in anew.
  func user(_ email: String) throws -> [(String, String)] {
    let answer = try signIn(email, String(email.prefix(1)))
    return [("Authorization", "Bearer " + (answer.json["access_token"]?.text ?? "none"))]
  }

  func signIn(_ email: String, _ password: String) throws -> RawClient.Answer {
    try auth(
      "token?grant_type=password", ["email": .string(email), "password": .string(password)])
  }

  func refresh(_ token: String, _ headers: [(String, String)] = []) throws -> RawClient.Answer {
    try auth(
      "token?grant_type=refresh_token", ["refresh_token": .string(token)], headers: headers)
  }

  func auth(
    _ path: String, _ body: JSON, headers: [(String, String)] = []
  ) throws -> RawClient.Answer {
    try send(
      "POST", "/auth/v1/" + path,
      headers: [("apikey", emulator.publishableKey), ("Content-Type", "application/json")]
        + headers, body: body.encoded)
  }

  /// A request that must be answered.
  func send(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws -> RawClient.Answer {
    try #require(try client.send(method, target, headers: headers, body: body))
  }

  /// A request of the service role with a JSON body.
  func post(
    _ target: String, _ body: JSON, method: String = "POST", as headers: [(String, String)]? = nil
  ) throws -> RawClient.Answer {
    try send(
      method, target,
      headers: (headers ?? service) + [("Content-Type", "application/json")], body: body.encoded)
  }

  func upload(
    _ path: String, _ bytes: [UInt8], method: String = "POST",
    headers: [(String, String)] = [("Content-Type", "text/plain")],
    as caller: [(String, String)]? = nil
  ) throws -> RawClient.Answer {
    try send(method, "/object/docs/" + path, headers: (caller ?? service) + headers, body: bytes)
  }

  func get(
    _ path: String, _ headers: [(String, String)] = [], as caller: [(String, String)]? = nil,
    method: String = "GET"
  ) throws -> RawClient.Answer {
    try send(
      method, "/object/authenticated/docs/" + path, headers: (caller ?? service) + headers)
  }

  func info(
    _ path: String, as caller: [(String, String)]? = nil
  ) throws -> RawClient.Answer {
    try send("GET", "/object/info/authenticated/docs/" + path, headers: caller ?? service)
  }
}

extension RawClient.Answer {
  /// HTTP status, `statusCode`, `error` and `code` of a refusal in one line.
  var refusal: String {
    "\(status) \(json["statusCode"]?.text ?? "-") \(json["error"]?.text ?? "-")"
      + " \(json["code"]?.text ?? "-")"
  }

  var message: String { json["message"]?.text ?? "" }
}

extension String {
  var bytes: [UInt8] { Array(utf8) }
}
