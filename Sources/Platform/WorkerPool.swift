/// Threads for work that blocks; made on demand, bounded, gone when idle for ten seconds.
///
/// Jobs begin in the order of their coming. Guarded by its own lock, never held while a job runs.
package final class WorkerPool: Sendable {
  private struct Job {
    let id: Int
    let body: @Sendable () -> Void
  }

  private struct State {
    var jobs: [Job] = []
    var lastID = 0
    var idle = 0
    var threads = 0
    var isClosing = false
  }

  private let state = Locked(State())
  private let name: String
  private let limit: Int

  /// - Parameters:
  ///   - name: of its threads.
  ///   - limit: the most threads there are at once.
  package init(name: String, limit: Int) {
    self.name = name
    self.limit = limit
  }

  /// Runs `job` on one of the threads, later when all of them are busy.
  ///
  /// - Returns: false when the pool is closed, or the system refuses even a first thread; the job
  ///   is not run then.
  package func run(_ job: @escaping @Sendable () -> Void) -> Bool {
    let (id, needsThread, isAwaited) = state.withLock { state -> (Int?, Bool, Bool) in
      if state.isClosing { return (nil, false, false) }
      state.lastID += 1
      state.jobs.append(Job(id: state.lastID, body: job))
      let needed = state.idle < state.jobs.count && state.threads < limit
      if needed { state.threads += 1 }
      return (state.lastID, needed, state.idle > 0)
    }
    guard let id else { return false }
    // One job, one thread. Only idle ones wait here until the pool is closed, which wakes all.
    if isAwaited { state.wakeOne() }
    guard needsThread else { return true }
    do throws(Errno) {
      _ = try Thread(name: name) { self.work() }
      return true
    } catch {
      return state.withLock { state -> Bool in
        state.threads -= 1
        guard state.threads == 0, let index = state.jobs.firstIndex(where: { $0.id == id }) else {
          return true
        }
        state.jobs.remove(at: index)
        return false
      }
    }
  }

  /// Takes no more jobs, and waits until those at work have ended.
  ///
  /// Jobs that were not begun are still run, so that whoever waits for them is answered.
  package func close(until deadline: Instant) {
    state.withLock { $0.isClosing = true }
    state.wakeAll()
    _ = state.wait(until: deadline) { $0.threads == 0 ? true : nil }
  }

  private func work() {
    while let job = next() { job() }
    state.wakeAll()
  }

  private func next() -> (@Sendable () -> Void)? {
    let deadline = Instant.now + .seconds(10)
    enum Step {
      case job(@Sendable () -> Void)
      case end
    }
    state.withLock { $0.idle += 1 }
    let step = state.wait(until: deadline) { state -> Step? in
      if !state.jobs.isEmpty {
        state.idle -= 1
        return .job(state.jobs.removeFirst().body)
      }
      guard state.isClosing else { return nil }
      state.idle -= 1
      state.threads -= 1
      return .end
    }
    switch step {
    case .job(let job): return job
    case .end: return nil
    case nil:
      // The deadline passed; a job may have come in between.
      return state.withLock { state -> (@Sendable () -> Void)? in
        state.idle -= 1
        if !state.jobs.isEmpty { return state.jobs.removeFirst().body }
        state.threads -= 1
        return nil
      }
    }
  }
}
