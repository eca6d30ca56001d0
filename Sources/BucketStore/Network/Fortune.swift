import Platform

/// How calls of one kind have been faring: whether the store has failed with all of them lately.
final class Fortune: Sendable {
  private struct State {
    var lastSuccess: Instant?
    /// What calls were about that have failed for good since the last success: two of it at most.
    var failing: Set<ObjectName> = []
  }

  private let state = Locked(State())

  /// Whether another try is of no use: who is next finds out whether the store does again.
  ///
  /// One thing that is broken says nothing of the others.
  var isBad: Bool { state.withLock { $0.failing.count > 1 } }

  func succeeded() {
    state.withLock { state in
      state.lastSuccess = .now
      state.failing = []
    }
  }

  /// A call has failed for good.
  ///
  /// - Parameters:
  ///   - thing: what it was about.
  ///   - begun: when it was first tried: if others were answered since, the store is busy, or fails
  ///     with this one alone.
  func ended(_ kind: StoreError.Kind, about thing: ObjectName, begun: Instant) {
    // Bytes that are damaged are so by themselves, or on their way.
    guard kind != .damaged else { return }
    guard RetryPolicy.helps(kind) else {
      // Any other answer is the store's own; where there was none, nothing is known of it.
      if Evidence(StoreError(kind, "")) == .answer { succeeded() }
      return
    }
    state.withLock { state in
      guard state.lastSuccess.map({ $0 < begun }) ?? true, state.failing.count < 2 else { return }
      state.failing.insert(thing)
    }
  }
}
