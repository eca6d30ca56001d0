import BucketStore
import Platform

/// One running question for a folder, shared by all who want its answer.
final class ListingFetch: Sendable {
  enum Outcome: Sendable {
    case listing(Listing)
    /// The folder has more pages than whoever asked wanted to wait for.
    case tooLong
    case failure(StoreError)
  }

  private let outcome = Locked<Outcome?>(nil)

  func finish(_ result: Outcome) {
    outcome.withLock { $0 = result }
    outcome.wakeAll()
  }

  /// Waits for the one who asks.
  ///
  /// - Returns: nil when the waiting was cancelled.
  func wait(_ cancellation: Cancellation) -> Outcome? {
    outcome.wait(cancellation) { $0 }
  }
}
