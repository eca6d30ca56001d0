import FileSystem
import Platform

/// A request that takes longer, with all it needs to be served by another thread.
final class WaitingRequest: Sendable {
  let id: UInt
  let caller: Caller
  let operation: Operation
  let server: Server
  /// When its turn must have come, lest it waits longer in line than it may for the store.
  let deadline: Instant
  private let request: Locked<Request?>

  init(
    _ id: UInt, _ request: consuming Request, _ caller: Caller, _ operation: @escaping Operation,
    _ server: Server, deadline: Instant
  ) {
    self.id = id
    self.caller = caller
    self.operation = operation
    self.server = server
    self.deadline = deadline
    self.request = Locked(request)
  }

  /// The request, for whoever answers it; nil when somebody has taken it.
  func take() -> Request? { request.withLock { $0.take() } }

  /// Answers that it was given up.
  func giveUp() {
    guard let request = take() else { return }
    request.fail(Failure(.interrupted, "interrupted while it waited for its turn"))
  }

  /// Answers that its time is over.
  func expire() {
    guard let request = take() else { return }
    request.fail(Failure(.timedOut, "its turn did not come in time", level: .info))
  }
}
