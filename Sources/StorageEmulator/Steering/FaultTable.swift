import Platform

/// The faults that are set, in their order; the first that fits a request befalls it.
final class FaultTable: Sendable {
  private struct Entry {
    let fault: Fault
    var seen = 0
  }

  private struct State {
    var entries: [Entry] = []
    /// Grows whenever the faults are cleared: what hangs then lets go.
    var generation = 0
  }

  private let state = Locked(State())

  func add(_ fault: Fault) {
    state.withLock { $0.entries.append(Entry(fault: fault)) }
  }

  func clear() {
    state.withLock { state in
      state.entries = []
      state.generation += 1
    }
  }

  var generation: Int { state.withLock { $0.generation } }

  /// The effect on one request, counted; nil when it goes unharmed.
  func effect(method: String, route: Route) -> Fault.Effect? {
    state.withLock { state in
      for index in state.entries.indices {
        let fault = state.entries[index].fault
        guard fault.fits(method: method, route: route) else { continue }
        let seen = state.entries[index].seen
        guard fault.times < 0 || seen < fault.after + fault.times else { continue }
        state.entries[index].seen += 1
        guard seen >= fault.after else { return nil }
        var effect = fault.effect
        if let after = effect.tagAfter, seen - fault.after >= after { effect.lie = .etag }
        return effect
      }
      return nil
    }
  }
}

extension Fault {
  fileprivate func fits(method: String, route: Route) -> Bool {
    (self.method == "*" || self.method == method)
      && (self.route == "*" || self.route == route.name.rawValue)
      && (bucket == nil || bucket == route.bucket) && (key == nil || key == route.key)
  }
}
