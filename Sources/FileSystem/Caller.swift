package import Platform

/// Which kind of thread a call runs on, and so whether it may wait.
package enum Lane: Int, Sendable, Comparable {
  /// Memory, quick reads of the index and local files only. A call that would take longer throws
  /// `Failure.takesTime` instead, or `Failure.mustWait` when it is clear that the store is needed.
  case fast
  /// May take its time on this device, and wait a moment for the store where something kept answers
  /// otherwise; a call that only the store can answer throws `Failure.mustWait` instead.
  case brief
  /// May wait for the store, within the bounds of the caller's `Call`.
  case slow

  package static func < (left: Lane, right: Lane) -> Bool { left.rawValue < right.rawValue }
}

/// Who asks, and how long the answer may take.
package struct Caller: Sendable {
  /// The asking process, as the kernel tells it; 0 when it is not known.
  package var processID: Int32
  /// The kind of thread that the call runs on.
  package var lane: Lane
  /// The bounds of the waiting; its cancellation is the kernel's interrupt.
  package var call: Call

  /// Whether it may wait for what another thread does on this device.
  package var mayWait: Bool { lane > .fast }

  package init(processID: Int32, lane: Lane, call: Call) {
    self.processID = processID
    self.lane = lane
    self.call = call
  }
}
