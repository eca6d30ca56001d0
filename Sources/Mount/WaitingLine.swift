import FileSystem
import Platform

/// A line of requests, and the threads that serve them, oldest first.
///
/// Grows by a thread when a request comes and none is idle, up to a bound; beyond it requests stand
/// in line, and one whose time runs out there is answered without a thread of its own. An idle
/// thread leaves after a while. Nothing is answered under the lock.
final class WaitingLine: Sendable {
  private struct State {
    /// Ids in the order of coming; an id that `queued` lacks has been withdrawn.
    var order: [UInt] = []
    var queued: [UInt: WaitingRequest] = [:]
    var threads = 0
    var idle = 0
    /// Whether a thread looks after those whose time runs out in line.
    var isWatched = false
    var isClosed = false

    mutating func removeFirst() -> WaitingRequest? {
      while let id = order.first {
        order.removeFirst()
        if let request = queued.removeValue(forKey: id) { return request }
      }
      return nil
    }

    mutating func removeAll() -> [WaitingRequest] {
      defer {
        queued = [:]
        order = []
      }
      return Array(queued.values)
    }
  }

  private let state = Locked(State())
  private let name: String
  private let limit: Int
  private let serve: @Sendable (WaitingRequest) -> Void
  private let drop: @Sendable (WaitingRequest) -> Void
  private static let idleTime = Span.seconds(30)

  /// - Parameters:
  ///   - name: of its threads.
  ///   - limit: the most threads that serve at once.
  ///   - serve: answers a request, on one of the threads.
  ///   - drop: called before a request is answered without being served.
  init(
    name: String, limit: Int, serve: @escaping @Sendable (WaitingRequest) -> Void,
    drop: @escaping @Sendable (WaitingRequest) -> Void
  ) {
    self.name = name
    self.limit = max(1, limit)
    self.serve = serve
    self.drop = drop
  }

  /// Puts a request at the end of the line.
  ///
  /// - Returns: false once closed.
  func add(_ request: WaitingRequest) -> Bool {
    enum Help {
      /// A thread waits for requests, and nobody else waits here.
      case oneIdle
      /// The watcher waits here too, and might be the one that is woken.
      case allIdle
      /// Every thread is busy, and there shall be no more.
      case later
      case thread
      /// The same, and the watcher is needed; idle threads that were not woken yet may have to share
      /// their waking with it.
      case watch
    }
    let help = state.withLock { state -> Help? in
      guard !state.isClosed else { return nil }
      state.queued[request.id] = request
      state.order.append(request.id)
      guard state.queued.count > state.idle else { return state.isWatched ? .allIdle : .oneIdle }
      if state.threads < limit {
        state.threads += 1
        return .thread
      }
      defer { state.isWatched = true }
      return state.isWatched ? .later : .watch
    }
    guard let help else { return false }
    switch help {
    case .oneIdle: state.wakeOne()
    case .allIdle: state.wakeAll()
    case .later: break
    case .thread: grow()
    case .watch:
      watch()
      // Whoever came just before saw no watcher, and wakes one thread, which may be the watcher now.
      state.wakeAll()
    }
    return true
  }

  /// Takes a request out of the line; nil when its turn has come already.
  func withdraw(_ id: UInt) -> WaitingRequest? {
    state.withLock { $0.queued.removeValue(forKey: id) }
  }

  /// Takes no more.
  ///
  /// - Returns: the requests whose turn had not come.
  func close() -> [WaitingRequest] {
    let left = state.withLock { state -> [WaitingRequest] in
      state.isClosed = true
      return state.removeAll()
    }
    state.wakeAll()
    return left
  }

  /// Waits until every thread has left.
  ///
  /// - Returns: false when some operation has not come back by the deadline.
  func join(until deadline: Instant) -> Bool {
    state.wait(until: deadline) { $0.threads == 0 && !$0.isWatched ? true : nil } ?? false
  }

  private func grow() {
    do throws(Errno) {
      _ = try Thread(name: name) { self.run() }
    } catch {
      let stranded = state.withLock { state -> [WaitingRequest] in
        state.threads -= 1
        return state.threads == 0 ? state.removeAll() : []
      }
      Log.error("no further thread could be started: \(error)")
      for waiting in stranded {
        drop(waiting)
        if let request = waiting.take() { request.fail(Failure(error, "no thread to wait on")) }
      }
    }
  }

  private func run() {
    while let waiting = next() {
      if Instant.now > waiting.deadline {
        drop(waiting)
        waiting.expire()
      } else {
        serve(waiting)
      }
    }
    state.wakeAll()
  }

  /// The next request; nil when the thread shall leave, which is counted already.
  private func next() -> WaitingRequest? {
    state.withLock { $0.idle += 1 }
    let found = state.wait(until: .now + Self.idleTime) { state -> WaitingRequest?? in
      if let request = state.removeFirst() {
        state.idle -= 1
        return request
      }
      return state.isClosed ? .some(nil) : nil
    }
    if let request = found ?? nil { return request }
    return state.withLock { state in
      state.idle -= 1
      // A request may have come between the end of the wait and here.
      if let request = state.removeFirst() { return request }
      state.threads -= 1
      return nil
    }
  }

  /// Starts the thread that answers those whose time runs out in line; it leaves with the last.
  private func watch() {
    do throws(Errno) {
      _ = try Thread(name: "fuse-line") {
        while let late = self.nextLate() {
          for waiting in late {
            self.drop(waiting)
            waiting.expire()
          }
        }
        self.state.wakeAll()
      }
    } catch {
      // They are looked at when their turn comes.
      Log.error("no thread could be started: \(error)")
      state.withLock { $0.isWatched = false }
    }
  }

  /// The requests whose time is over; nil when none is left to look after.
  private func nextLate() -> [WaitingRequest]? {
    while true {
      let due = state.withLock { state -> Instant? in
        let due = state.queued.values.map(\.deadline).min()
        if due == nil { state.isWatched = false }
        return due
      }
      guard let due else { return nil }
      let late = state.wait(until: due) { state -> [WaitingRequest]? in
        let late = state.queued.values.filter { $0.deadline <= .now }
        for request in late { state.queued[request.id] = nil }
        return late.isEmpty && !state.queued.isEmpty ? nil : late
      }
      if let late, !late.isEmpty { return late }
    }
  }
}
