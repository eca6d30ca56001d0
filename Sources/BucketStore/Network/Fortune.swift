import Platform

/// How calls of one kind have been faring: whether the store has failed with all of them lately.
final class Fortune: Sendable {
  private struct State {
    var lastSuccess: Instant?
    var isBad = false
  }

  private let state = Locked(State())

  /// Whether another try is of no use: who is next finds out whether the store does again.
  var isBad: Bool { state.withLock { $0.isBad } }

  func succeeded() {
    state.withLock { state in
      state.lastSuccess = .now
      state.isBad = false
    }
  }

  /// A call has failed for good.
  ///
  /// - Parameter begun: when it was first tried: if others were answered since, the store is busy,
  ///   or fails with this one alone.
  func ended(_ kind: StoreError.Kind, begun: Instant) {
    guard RetryPolicy.helps(kind) else {
      // Any other answer is the store's own; where there was none, nothing is known of it.
      if Evidence(StoreError(kind, "")) == .answer { succeeded() }
      return
    }
    state.withLock { state in
      if state.lastSuccess.map({ $0 < begun }) ?? true { state.isBad = true }
    }
  }
}
