package import Platform

/// What is known of the way to the store.
package enum NetworkState: String, Sendable, CaseIterable {
  /// Requests are sent. Also the state at the start, when nothing is known.
  case online
  /// The store was not reached: no request is sent until a probe has reached it.
  case offline
  /// The person switched network access off: nothing is sent, probes neither.
  case disabled
  /// The store is reached, but the session waits for its refresh.
  case restoring
}

/// A change of the network's state.
package struct NetworkChange: Sendable, Equatable {
  /// The state until now.
  package let from: NetworkState
  /// The state from now on.
  package let to: NetworkState
  /// Why, for people.
  package let reason: String
}

/// How patient the network is.
package struct NetworkOptions: Sendable {
  /// Pauses between probes while offline.
  package var probes: Backoff
  /// The deadline of one probe.
  package var probeTimeout: Span
  /// The least time between probes that changes of links start while the network is online.
  package var linkPause: Span
  /// Whether changes of links, addresses and routes start a probe.
  package var watchesLinks: Bool

  package init(
    probes: Backoff = Backoff(first: .seconds(1), longest: .seconds(60)),
    probeTimeout: Span = .seconds(5), linkPause: Span = .seconds(5), watchesLinks: Bool = true
  ) {
    self.probes = probes
    self.probeTimeout = probeTimeout
    self.linkPause = linkPause
    self.watchesLinks = watchesLinks
  }
}

/// Pauses that double from try to try, each shortened by chance.
///
/// Chance keeps many clients of one store from coming back in step.
package struct Backoff: Sendable {
  /// The full length of the first pause.
  package var first: Span
  /// What the pauses grow to.
  package var longest: Span

  package init(first: Span, longest: Span) {
    self.first = first
    self.longest = longest
  }

  /// The pause after a number of failures in a row, from half of its full length up.
  package func pause(afterFailures count: Int) -> Span {
    var full = first
    for _ in 1..<max(count, 1) where full < longest { full = full * 2 }
    let bound = max(min(full, longest).nanoseconds, 2)
    return Span(nanoseconds: Int64.random(in: (bound / 2)...bound))
  }
}
