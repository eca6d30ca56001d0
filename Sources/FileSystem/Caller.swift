package import Platform

/// Which kind of thread a call runs on, and so whether it may wait.
package enum Lane: Sendable {
  /// Memory, reads of the index and local files only; a call that would have to wait throws
  /// `Failure.mustWait` instead.
  case fast
  /// May wait for the store, within the bounds of the caller's `Call`.
  case slow
}

/// Who asks, and how long the answer may take.
package struct Caller: Sendable {
  /// The asking process, as the kernel tells it; 0 when it is not known.
  package var processID: Int32
  package var lane: Lane
  /// The bounds of the waiting; its cancellation is the kernel's interrupt.
  package var call: Call

  package init(processID: Int32, lane: Lane, call: Call) {
    self.processID = processID
    self.lane = lane
    self.call = call
  }
}
