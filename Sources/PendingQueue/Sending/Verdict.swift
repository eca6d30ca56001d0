import BucketStore

/// What becomes of a record whose try failed, by the kind of the failure.
enum Verdict: Equatable {
  /// The way to the store, not this file: everything pauses, and it costs no attempt.
  case noNetwork
  /// The session, not this file: everything pauses, and it costs no attempt.
  case noSession
  /// The store asks everybody to come later: everything pauses, and it costs an attempt.
  case throttled
  /// It may do later: it costs an attempt, and this file waits for a while.
  case later
  /// No try will change that: failed until somebody changes something.
  case refused
  /// Another writer was first: failed, and both contents are kept.
  case conflict
  /// We stopped it ourselves.
  case stopped

  /// The one table.
  init(_ kind: StoreError.Kind, session: SessionState) {
    switch kind {
    case .connectivity, .timeout, .offline, .disabled: self = .noNetwork
    case .sessionExpired: self = .noSession
    case .notFound, .refused: self = session.isCredible ? .refused : .noSession
    case .tooLarge, .typeRefused, .keyRefused, .unsupported: self = .refused
    case .exists, .conflict: self = .conflict
    case .throttled: self = .throttled
    case .server, .damaged, .noRoom: self = .later
    case .cancelled: self = .stopped
    }
  }
}
