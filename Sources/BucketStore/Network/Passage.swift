package import Platform

/// One call that the network has let pass, until it is reported finished.
///
/// Its cancellation is the call's own one step further: whoever stops the call stops the passage,
/// and the network stops it alone when it learns that waiting is of no use.
package final class Passage: Sendable {
  private struct State {
    var lastByte: Instant?
    var cut: StoreError?
  }

  /// Give this one to the store below.
  package let cancellation = Cancellation()
  let id: Int
  let timeout: Span
  /// Whether it ends when the network is lost; a probe must not.
  let isCutWhenLost: Bool
  private let outer: Cancellation
  private let handler: Int
  private let state = Locked(State())

  init(id: Int, _ call: Call, isCutWhenLost: Bool) {
    self.id = id
    self.isCutWhenLost = isCutWhenLost
    timeout = call.timeout
    outer = call.cancellation
    let cancellation = cancellation
    handler = call.cancellation.onCancel { cancellation.cancel() }
  }

  /// A byte has come or gone.
  package func noteByte() {
    state.withLock { $0.lastByte = .now }
  }

  /// Whether a byte has come or gone within a time.
  func isAlive(within span: Span) -> Bool {
    guard let last = state.withLock({ $0.lastByte }) else { return false }
    return Instant.now.since(last) < span
  }

  /// Stops it, with the reason that its caller is to learn.
  func cut(_ error: StoreError) {
    state.withLock { state in
      if state.cut == nil { state.cut = error }
    }
    cancellation.cancel()
  }

  /// Lets go of the call.
  ///
  /// - Returns: what the caller is to learn: the network's reason where that has stopped it.
  func end(_ error: StoreError?) -> StoreError? {
    outer.remove(handler)
    guard let error, error.kind == .cancelled, !outer.isCancelled else { return error }
    return state.withLock { $0.cut } ?? error
  }
}
