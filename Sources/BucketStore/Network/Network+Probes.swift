package import Platform

/// The monitor: probes the store while it is not reached.
extension Network {
  /// Starts the monitor thread and the watch over links.
  ///
  /// - Parameter probe: asks the store something small; every answer counts, a refusal too. It runs
  ///   on the monitor thread and must heed its call's deadline and cancellation.
  /// - Throws: `Errno` when the system refuses another thread.
  package func start(probe: @escaping @Sendable (Call) throws(StoreError) -> Void) throws(Errno) {
    let probes = Probes(self, probe)
    _ = try Thread(name: "monitor") { probes.run() }
    guard options.watchesLinks else { return }
    do throws(Errno) {
      let watch = try LinkWatch { [weak self] in self?.linksChanged() }
      links.withLock { $0 = watch }
    } catch {
      Log.warning("changes of the network's links are not seen: \(error)")
    }
  }

  /// Ends the monitor and the watch. Calls are let pass or refused as before, by the last state.
  package func stop() {
    let running = state.withLock { state -> Cancellation? in
      state.isStopped = true
      return state.running?.cancellation
    }
    state.wakeAll()
    running?.cancel()
    links.withLock { $0 }?.stop()
  }

  /// Calls `observer` when a link, an address or a route has changed, on the watching thread.
  package func onLinkChange(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.linkObservers.append(observer) }
  }

  /// Probes at once, whatever the state; not while network access is switched off.
  ///
  /// A probe that has been waiting for a while is given up: the way may be another one now.
  package func probeNow() {
    let stale = state.withLock { state -> Cancellation? in
      guard !state.isDisabled else { return nil }
      state.probeFailures = 0
      state.nextProbe = .now
      guard let running = state.running, Instant.now.since(running.since) > .milliseconds(500)
      else { return nil }
      return running.cancellation
    }
    state.wakeAll()
    stale?.cancel()
  }

  /// A link, an address or a route has changed: what was true of the network may be so no more.
  func linksChanged() {
    let (observers, mustProbe) = state.withLock { state in
      if state.lost != nil { return (state.linkObservers, true) }
      // Online, and machines with many changes: the probe waits for its turn.
      let turn = state.lastLinkProbe.map { $0 + options.linkPause } ?? .now
      if !state.isDisabled, state.nextProbe == nil {
        state.nextProbe = max(turn, .now)
        state.lastLinkProbe = state.nextProbe
      }
      return (state.linkObservers, false)
    }
    for observer in observers { observer() }
    if mustProbe { probeNow() } else { state.wakeAll() }
  }
}

/// The work of the monitor thread.
private struct Probes: Sendable {
  private enum Step: Sendable {
    case stop
    case look
    case probe(Cancellation)
  }

  // The network outlives nobody here: the thread ends when the network is let go.
  private weak let network: Network?
  private let state: Locked<Network.State>
  private let options: NetworkOptions
  private let probe: @Sendable (Call) throws(StoreError) -> Void

  init(_ network: Network, _ probe: @escaping @Sendable (Call) throws(StoreError) -> Void) {
    self.network = network
    state = network.state
    options = network.options
    self.probe = probe
  }

  func run() {
    while true {
      switch wait() {
      case .stop: return
      case .look: continue
      case .probe(let cancellation): ask(cancellation)
      }
    }
  }

  private func wait() -> Step {
    let due = state.withLock { $0.due }
    let step = state.wait(until: due) { state -> Step? in
      if state.isStopped { return .stop }
      guard state.due == due else { return .look }
      guard let due else { return nil }
      guard due <= .now else { return nil }
      if state.nextProbe.map({ $0 > .now }) ?? true {
        state.nextLook = state.nextDoubt
        guard let doubt = state.nextLook, doubt <= .now else { return .look }
      }
      let cancellation = Cancellation()
      state.nextProbe = nil
      state.running = (cancellation, .now)
      return .probe(cancellation)
    }
    return step ?? .look
  }

  private func ask(_ cancellation: Cancellation) {
    var failure: StoreError?
    do throws(StoreError) {
      try probe(Call(timeout: options.probeTimeout, cancellation: cancellation))
    } catch {
      failure = error
    }
    let evidence = Evidence(failure)
    let reason = failure?.message ?? "a probe was answered"
    let cut = network?.change(reason) { state -> [Passage] in
      state.running = nil
      // An answer or not, the next doubt is some time away.
      defer { state.nextLook = state.nextDoubt.map { max($0, .now + .seconds(1)) } }
      // Switched off meanwhile, or to be asked anew: this answer counts no more.
      guard !state.isDisabled, !cancellation.isCancelled else { return [] }
      let again = state.nextProbe
      defer { if let again { state.nextProbe = again } }
      if evidence == .answer {
        state.reach()
        return []
      }
      // While bytes come in, one probe without an answer proves nothing.
      let isAlive = state.passages.values.contains { $0.isAlive(within: .seconds(1)) }
      let passages = evidence == .silence && !isAlive ? state.lose(reason) : []
      guard state.lost != nil else { return [] }
      state.probeFailures += 1
      state.nextProbe = .now + options.probes.pause(afterFailures: state.probeFailures)
      return passages
    }
    for passage in cut ?? [] { passage.cutLost(reason) }
  }
}
