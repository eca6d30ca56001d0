import Platform

/// The calls below `/_emulator/` by which tests and people steer the emulator; no key is asked.
///
/// - `POST /_emulator/faults` sets a fault (see `Fault`); `DELETE` clears all.
/// - `GET /_emulator/requests[?since=N]` reads the request log; `DELETE` empties it.
/// - `POST /_emulator/clock` `{"advance_s": N}` moves the clock of tokens and timestamps.
/// - `POST /_emulator/auth` `{"token_life_s": N, "reuse_interval_s": N}`, either alone.
/// - `POST /_emulator/cdn` `{"stale_s": N}` sets how long the edge keeps what it has handed out.
/// - `POST /_emulator/users` replaces users and policies (see `Policies`).
/// - `GET /_emulator/keys` shows the keys of the project.
struct Steering: Sendable {
  let world: World
  let faults: FaultTable
  let log: RequestLog

  func answer(_ request: Request, _ bytes: [UInt8]) -> Response {
    let parts = request.target.split(separator: "?", maxSplits: 1)
    let query = Query(parts.count > 1 ? parts[1] : "")
    let body = UploadSource.metadata(bytes)
    switch (request.method, parts[0]) {
    case ("POST", "/_emulator/faults"): return setFault(body)
    case ("DELETE", "/_emulator/faults"):
      faults.clear()
      return Response(json: [:])
    case ("GET", "/_emulator/requests"):
      let since = query["since"].flatMap { Int($0) } ?? 0
      return Response(json: .array(log.entries(since: since).map(\.json)))
    case ("DELETE", "/_emulator/requests"):
      log.clear()
      return Response(json: [:])
    case ("POST", "/_emulator/clock"): return moveClock(body)
    case ("POST", "/_emulator/auth"): return setTokens(body)
    case ("POST", "/_emulator/cdn"):
      guard let seconds = body?["stale_s"]?.whole else { return Self.bad("stale_s is missing") }
      world.setStaleness(.seconds(Double(seconds)))
      return Response(json: [:])
    case ("POST", "/_emulator/users"): return setUsers(body)
    case ("GET", "/_emulator/keys"):
      return Response(json: [
        "anon": .string(world.keys.anon), "service": .string(world.keys.service),
        "publishable": .string(world.keys.publishable), "secret": .string(world.keys.secretKey),
      ])
    default: return Response(status: 404, json: ["message": "no such call"])
    }
  }

  private static func bad(_ message: String) -> Response {
    Response(status: 400, json: ["message": .string(message)])
  }

  private func setFault(_ body: JSON?) -> Response {
    guard let fault = body.flatMap(Fault.init(reading:)) else {
      return Self.bad("not a fault, or an unknown member in it")
    }
    faults.add(fault)
    return Response(json: [:])
  }

  private func moveClock(_ body: JSON?) -> Response {
    guard let seconds = body?["advance_s"]?.whole else { return Self.bad("advance_s is missing") }
    world.advanceClock(seconds: seconds)
    return Response(json: ["now": .string(TimeText.iso(world.now))])
  }

  private func setTokens(_ body: JSON?) -> Response {
    guard let body else { return Self.bad("no JSON object") }
    world.contents.withLock { contents in
      contents.tokenLife = body["token_life_s"]?.whole ?? contents.tokenLife
      contents.reuseInterval = body["reuse_interval_s"]?.whole ?? contents.reuseInterval
    }
    return Response(json: [:])
  }

  private func setUsers(_ body: JSON?) -> Response {
    guard let body else { return Self.bad("no JSON object") }
    do throws(Policies.Unreadable) {
      let policies = try Policies(reading: body)
      let buckets = try Policies.buckets(in: body)
      world.contents.withLock { $0.policies = policies }
      for (name, settings) in buckets { world.createBucket(name, settings) }
      return Response(json: [:])
    } catch {
      return Self.bad(error.description)
    }
  }
}
