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
  /// Since when its caller waits.
  let begun: Instant
  private let admitted = Instant.now
  /// Whether it ends when the network is lost; a probe must not.
  let isCutWhenLost: Bool
  private let outer: Cancellation
  private let handler: Int
  private let state = Locked(State())

  init(id: Int, _ call: Call, isCutWhenLost: Bool) {
    self.id = id
    self.isCutWhenLost = isCutWhenLost
    timeout = call.timeout
    begun = call.waitingSince
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

  /// How long it waits without a byte before the store is probed: so much less than half of its time
  /// that the answer is there when its time is over, and counts then. A second at least.
  var patience: Span { Self.patience(timeout) }

  private static func patience(_ timeout: Span) -> Span {
    max(Span(nanoseconds: timeout.nanoseconds / 5 * 2), .seconds(1))
  }

  /// Whether it has waited for its answer so long that silence says something of the network.
  var hasWaited: Bool {
    Instant.now.since(admitted) >= Span(nanoseconds: timeout.nanoseconds / 2)
  }

  /// The moment from which it has been waiting for a byte.
  var silentSince: Instant { state.withLock { max($0.lastByte ?? begun, begun) } }

  /// Stops it, since the network is lost.
  func cutLost(_ reason: String) {
    cut(Self.lost(reason, waitingSince: silentSince, timeout))
  }

  /// What a call learns when the network is lost: who has waited for most of its time has had no
  /// answer in time, who has just begun finds no network.
  static func lost(_ reason: String, waitingSince start: Instant, _ timeout: Span) -> StoreError {
    let most = min(patience(timeout), Span(nanoseconds: timeout.nanoseconds / 2))
    let isOverdue = Instant.now.since(start) >= most
    return StoreError(isOverdue ? .timeout : .offline, "offline: \(reason)")
  }

  /// Stops it, with the reason that its caller is to learn.
  func cut(_ error: StoreError) {
    state.withLock { state in
      if state.cut == nil { state.cut = error }
    }
    cancellation.cancel()
  }

  /// Whether the network has stopped it; how it ended says nothing more of the network then.
  var isCut: Bool { state.withLock { $0.cut != nil } }

  /// Lets go of the call.
  ///
  /// - Returns: what the caller is to learn: the network's reason where that has stopped it.
  func end(_ error: StoreError?) -> StoreError? {
    outer.remove(handler)
    guard let error, error.kind == .cancelled, !outer.isCancelled else { return error }
    return state.withLock { $0.cut } ?? error
  }
}
