package import Platform

/// Why a store's call failed. `kind` alone decides retry, state and errno, in one table.
package struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What sort of failure it is; its raw value is the word that people and programs are shown.
  package enum Kind: String, Sendable, CaseIterable {
    /// There is no such object or bucket, as far as the caller may see.
    case notFound
    /// The policy or the credentials refuse it, and no new try will change that.
    case refused
    /// The token has expired; a refreshed one may do.
    case sessionExpired
    /// Another writer was first.
    case conflict
    /// It exists already.
    case exists
    case tooLarge
    case typeRefused
    case keyRefused
    /// The store asks to come back later.
    case throttled
    /// The store failed (5xx, lock and database time-outs, an answer that is no answer).
    case server
    /// The store was not reached: look-up, connect, TLS, a connection cut.
    case connectivity
    /// The store was reached or not, but said nothing within the call's time.
    case timeout
    /// What arrived is not what was announced.
    case damaged
    /// The caller stopped it.
    case cancelled
    /// The person switched network access off: nothing was sent.
    case disabled
    /// The network is known to be gone: nothing was sent.
    case offline
    /// The store has no such call.
    case unsupported
    /// This device has no room for the bytes.
    case noRoom
  }

  /// What decides retry, state and errno.
  package var kind: Kind
  /// What happened, with the store's own words where it had any. Holds no credential.
  package var message: String

  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  package var description: String { message }
}

extension StoreError.Kind {
  /// Whether the same call may succeed later without anybody changing anything.
  package var isRetryable: Bool {
    switch self {
    case .throttled, .server, .connectivity, .timeout, .damaged, .sessionExpired, .offline,
      .disabled:
      true
    case .notFound, .refused, .conflict, .exists, .tooLarge, .typeRefused, .keyRefused, .cancelled,
      .unsupported, .noRoom:
      false
    }
  }

  /// Whether it speaks of the way to the store, not of the store: it makes the network "offline".
  package var isConnectivity: Bool { self == .connectivity || self == .timeout }

  /// What the caller of a file operation is told when nothing kept can answer.
  package var errno: Errno {
    switch self {
    case .notFound: .noEntry
    case .refused, .sessionExpired: .permission
    case .conflict, .server, .damaged: .io
    case .throttled: .io
    case .exists: .exists
    case .tooLarge: .fileTooLarge
    case .typeRefused, .unsupported: .notSupported
    case .keyRefused: .invalid
    case .connectivity, .offline: .networkUnreachable
    case .timeout: .timedOut
    case .cancelled: .interrupted
    case .disabled: .networkDown
    case .noRoom: .noSpace
    }
  }
}
