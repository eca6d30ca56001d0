import Platform

/// The cache's housekeeping thread: it writes what lags behind, and evicts what is too much.
final class Keeper: Sendable {
  private struct State {
    var thread: Thread?
    var isStopping = false
    var isPoked = false
  }

  private let state = Locked(State())
  private static let pause = Span.seconds(5)
  private static let shortPause = Span.milliseconds(200)

  /// Starts the thread; it keeps the cache alive until `stop`.
  func start(_ cache: FileCache, needsSweep: Bool) throws(Errno) {
    let thread = try Thread(name: "keeper") { [self] in
      if needsSweep { cache.sweep { self.isStopping } }
      while next() {
        cache.keepHouse()
        rest()
      }
    }
    state.withLock { $0.thread = thread }
  }

  /// Whether the thread is to end soon.
  var isStopping: Bool { state.withLock { $0.isStopping } }

  /// Asks for a round now.
  func poke() {
    state.withLock { $0.isPoked = true }
    state.wakeAll()
  }

  /// Ends the thread and waits for it.
  func stop() {
    let thread = state.withLock { state -> Thread? in
      state.isStopping = true
      return state.thread
    }
    state.wakeAll()
    thread?.join()
  }

  /// Lets what pokes it gather, so that a burst of downloads is one round.
  private func rest() {
    _ = state.wait(until: .now + Self.shortPause) { $0.isStopping ? true : nil }
  }

  private func next() -> Bool {
    let isStopping = state.wait(until: .now + Self.pause) { state -> Bool? in
      if state.isStopping { return true }
      guard state.isPoked else { return nil }
      state.isPoked = false
      return false
    }
    return !(isStopping ?? false)
  }
}
