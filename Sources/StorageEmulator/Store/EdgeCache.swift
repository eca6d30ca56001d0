import Platform

/// What the network of caches before the hosted service keeps: answers by path, query and token.
struct EdgeCache: Sendable {
  struct Entry: Sendable {
    var row: ObjectRow
    var at: Timestamp
  }

  /// How long an answer is handed out again; zero is no cache.
  var staleness = Span.zero
  var entries: [String: Entry] = [:]
}

extension World {
  func setStaleness(_ span: Span) {
    edge.withLock { edge in
      edge.staleness = span
      edge.entries = [:]
    }
  }
}

extension Service {
  /// The row that a download is answered from: a former one as long as the edge keeps it.
  func edgeRow(_ exchange: Exchange, _ reader: Route.Reader) throws(Failure) -> ObjectRow {
    let now = world.now
    let name = "\(exchange.authorization ?? "") \(exchange.request.target)"
    let staleness = world.edge.withLock { $0.staleness }
    guard world.isHosted, staleness > .zero, !exchange.isHead else {
      return try find(exchange, reader)
    }
    let kept = world.edge.withLock { $0.entries[name] }
    if let kept, now < kept.at + staleness { return kept.row }
    let row = try find(exchange, reader)
    world.edge.withLock { $0.entries[name] = EdgeCache.Entry(row: row, at: now) }
    return row
  }
}
