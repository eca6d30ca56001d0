import Glibc
import Platform

/// Sends one answer, changed and disturbed as a fault asks.
struct Delivery {
  let connection: Connection
  let faults: FaultTable
  /// HEAD sends no body, whatever the answer holds.
  let isHead: Bool

  /// - Returns: what was sent, and whether the connection can carry another request.
  func send(
    _ response: Response, effect: Fault.Effect?, closes: Bool, sent: (Int) -> Void
  ) throws(Failure) {
    let response = effect.map { Self.apply($0, to: response) } ?? response
    let sendsBody = response.sendsBody && !isHead
    var claimed = response.claimedLength ?? response.body.count
    if effect?.lie == .length { claimed = max(0, claimed + (effect?.by ?? -1)) }
    var head = "HTTP/1.1 \(response.status) \(Response.reason(response.status))\r\n"
    for field in response.headers.fields { head += "\(field.name): \(field.value)\r\n" }
    if response.status != 204, response.status != 304 || response.claimedLength != nil {
      head += "Content-Length: \(claimed)\r\n"
    }
    head += "Date: \(TimeText.http(.now))\r\n"
    head += closes ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n"
    guard sendsBody else { return try connection.send(Array(head.utf8)) }
    try sendBody(response, head: Array(head.utf8), effect: effect, sent: sent)
    // More was promised than there is: only the end of the connection tells.
    if claimed > response.body.count { throw .disconnected }
  }

  private func sendBody(
    _ response: Response, head: [UInt8], effect: Fault.Effect?, sent: (Int) -> Void
  ) throws(Failure) {
    let end = min(response.body.count, effect?.cutAfter ?? .max, effect?.stallAfter ?? .max)
    let pace = effect?.bytesPerSecond
    let size = pace.map { max(1, $0 / 20) } ?? 256 << 10
    var offset = min(end, size)
    var bytes = head
    bytes += try response.piece(at: 0, limit: offset)
    if effect?.lie == .flip {
      let place = effect?.at ?? response.body.count / 2
      if place < offset { bytes[head.count + place] ^= 1 }
    }
    try connection.send(bytes)
    sent(offset)
    while offset < end {
      if let pace { usleep(UInt32(clamping: size * 1_000_000 / max(1, pace))) }
      var piece = try response.piece(at: offset, limit: min(size, end - offset))
      if effect?.lie == .flip {
        let place = (effect?.at ?? response.body.count / 2) - offset
        if piece.indices.contains(place) { piece[place] ^= 1 }
      }
      try connection.send(piece)
      offset += piece.count
      sent(piece.count)
    }
    if effect?.cutAfter != nil, end < response.body.count { throw .disconnected }
    if effect?.stallAfter != nil { try hang() }
  }

  /// Answers nothing until the client goes or the faults are cleared.
  func hang() throws(Failure) {
    let generation = faults.generation
    while faults.generation == generation {
      if connection.isClosedByClient(within: 50) { break }
    }
    throw .disconnected
  }

  /// Waits, but not for a client that has gone.
  func pause(_ span: Span) {
    if span > .zero {
      _ = connection.isClosedByClient(within: Int32(clamping: span.nanoseconds / 1_000_000))
    }
  }

  private static func apply(_ effect: Fault.Effect, to original: Response) -> Response {
    var response = original
    switch effect.lie {
    case .short where (200..<300).contains(response.status):
      if case .blob(let blob, let range) = response.body {
        response.body = .blob(
          blob, range.lowerBound..<(range.lowerBound + range.count / 2))
      }
      if case .bytes(let bytes) = response.body {
        response.body = .bytes(Array(bytes.prefix(bytes.count / 2)))
      }
    case .etag:
      if response.headers["ETag"] != nil {
        response.headers["ETag"] = "\"0123456789abcdef0123456789abcdef\""
      }
    case .weak:
      if let tag = response.headers["ETag"] { response.headers["ETag"] = "W/" + tag }
    case .html:
      response = Response(
        headers: Headers([(name: "Content-Type", value: "text/html; charset=utf-8")]),
        body: .bytes(Array("<!DOCTYPE html><html><body>Please sign in.</body></html>".utf8)))
    case .range:
      if response.headers["Content-Range"] != nil {
        response.headers["Content-Range"] = "bytes 0-\(response.body.count)/999999999"
      }
    case .notModified:
      response = Response(status: 304)
      response.sendsBody = false
    default: break
    }
    return response
  }
}
