import Platform

/// The body of one request, read piece by piece as the handler asks for it.
///
/// A handler that refuses early leaves it unread; the connection then ends after the answer.
final class RequestBody {
  private enum Framing {
    case ended
    case length(Int)
    case chunk(Int)
  }

  private let connection: Connection
  private var framing: Framing
  private var mustContinue: Bool
  private var cut: Int?

  /// What Content-Length says; nil for a chunked body.
  let declaredLength: Int?
  private(set) var received = 0

  /// - Parameter cut: ends the connection once that many bytes have come; nil for never.
  init(_ request: Request, on connection: Connection, cut: Int?) throws(Failure) {
    self.connection = connection
    self.cut = cut
    mustContinue = request.headers["Expect"]?.lowercased() == "100-continue"
    if request.headers["Transfer-Encoding"]?.lowercased().hasSuffix("chunked") ?? false {
      framing = .chunk(0)
      declaredLength = nil
    } else {
      guard let length = Int(request.headers["Content-Length"] ?? "0"), length >= 0 else {
        throw .disconnected
      }
      framing = length == 0 ? .ended : .length(length)
      declaredLength = length
    }
  }

  var isConsumed: Bool {
    guard case .ended = framing else { return false }
    return true
  }

  /// The next piece of at most 64 KiB; nil at the end.
  func next() throws(Failure) -> [UInt8]? {
    if let cut, received >= cut { throw .disconnected }
    if mustContinue, !isConsumed {
      mustContinue = false
      try connection.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
    }
    let allowed = cut.map { $0 - received } ?? .max
    switch framing {
    case .ended: return nil
    case .length(let rest):
      let piece = try connection.bytes(limit: min(rest, allowed, 64 << 10))
      framing = piece.count == rest ? .ended : .length(rest - piece.count)
      received += piece.count
      return piece
    case .chunk(var rest):
      if rest == 0 {
        rest = try chunkSize()
        if rest == 0 {
          while try !connection.line().isEmpty {}
          framing = .ended
          return nil
        }
      }
      let piece = try connection.bytes(limit: min(rest, allowed, 64 << 10))
      received += piece.count
      if piece.count == rest {
        guard try connection.line().isEmpty else { throw .disconnected }
      }
      framing = .chunk(rest - piece.count)
      return piece
    }
  }

  /// Whether a piece can be had without waiting, or within a time; the end counts as one.
  func isReady(within milliseconds: Int32) -> Bool {
    isConsumed || connection.isReadable(within: milliseconds)
  }

  /// The whole body.
  ///
  /// - Throws: a refusal when it is longer than `limit` bytes.
  func all(limit: Int) throws(Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    if let declaredLength, declaredLength > limit { throw .refused(.bodyTooLarge) }
    while let piece = try next() {
      bytes += piece
      guard bytes.count <= limit else { throw .refused(.bodyTooLarge) }
    }
    return bytes
  }

  /// Waits, but not for a client that has gone.
  func pause(_ span: Span) {
    if span > .zero {
      _ = connection.isClosedByClient(within: Int32(clamping: span.nanoseconds / 1_000_000))
    }
  }

  private func chunkSize() throws(Failure) -> Int {
    let line = try connection.line()
    let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 32 }
    guard let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0 else {
      throw .disconnected
    }
    return size
  }
}
