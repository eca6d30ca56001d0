import Platform

/// Takes the requests of one connection one after the other.
struct Serving: Sendable {
  let service: Service
  let faults: FaultTable
  let log: RequestLog

  func serve(_ connection: Connection) {
    do throws(Failure) {
      while let head = try connection.head() {
        guard let request = Request(head: head) else {
          try connection.send(
            Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8)
          )
          return connection.linger()
        }
        guard try answer(request, on: connection) else { return }
      }
    } catch {
      // The client is gone or was cut off: there is nobody to tell.
    }
  }

  /// - Returns: whether the connection goes on.
  private func answer(_ request: Request, on connection: Connection) throws(Failure) -> Bool {
    let delivery = Delivery(
      connection: connection, faults: faults, isHead: request.method == "HEAD")
    if request.target.hasPrefix("/_emulator/") {
      let body = try RequestBody(request, on: connection, cut: nil)
      let response = Steering(world: service.world, faults: faults, log: log)
        .answer(request, try body.all(limit: 16 << 20))
      try delivery.send(response, effect: nil, closes: request.asksToClose) { _ in }
      return !request.asksToClose
    }
    var request = request
    let route = Router(profile: service.world.configuration.profile).route(request)
    let number = log.begin(request, route)
    let effect = faults.effect(method: request.method, route: route)
    if let effect {
      log.update(number) { $0.isFaulty = true }
      delivery.pause(effect.delay)
      if effect.hangs { try delivery.hang() }
      if effect.lie == .whole { request.headers["Range"] = nil }
    }
    let body = try RequestBody(request, on: connection, cut: effect?.cutRequestAfter)
    defer { log.update(number) { $0.bytesIn = body.received } }
    let response: Response
    if let planned = effect.flatMap({ Self.planned($0, route) }) {
      response = planned
    } else {
      response = try service.answer(request, route, body, effect)
    }
    if effect?.losesAnswer ?? false { throw .disconnected }
    let closes = request.asksToClose || !body.isConsumed
    log.update(number) { entry in
      entry.status = effect?.lie == .notModified ? 304 : response.status
      entry.bytesIn = body.received
    }
    try delivery.send(response, effect: effect, closes: closes) { count in
      log.update(number) { $0.bytesOut += count }
    }
    if closes { connection.linger() }
    return !closes
  }

  /// The answer that a fault gives in place of the service's.
  private static func planned(_ effect: Fault.Effect, _ route: Route) -> Response? {
    if let trouble = effect.trouble.flatMap({ Refusal.troubles[$0] }) {
      return route.name == .tus
        ? trouble.resumableResponse(hidesCode: false) : trouble.response(hidesCode: false)
    }
    guard let status = effect.status else { return nil }
    switch effect.body {
    case nil: return Response(status: status)
    case .string(let text)?:
      let type = text.hasPrefix("<") ? "text/html; charset=utf-8" : "text/plain; charset=utf-8"
      return Response(
        status: status, headers: Headers([(name: "Content-Type", value: type)]),
        body: .bytes(Array(text.utf8)))
    case let json?: return Response(status: status, json: json)
    }
  }
}
