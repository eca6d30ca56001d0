package import Platform

/// One database file: one writing thread with batched transactions, and a connection for each
/// reader.
///
/// Whatever is queued while a transaction runs goes into the next one together; each piece has its
/// own savepoint, so that one that fails takes no other along.
package final class Database: Sendable {
  /// A piece of writing. Runs on the writing thread; it may touch local files too, which puts file
  /// and row in one order for all.
  package typealias Work = @Sendable (inout Connection) throws(DatabaseError) -> Void

  private struct Job {
    let work: Work
    /// Whether it must not run within a transaction.
    var isAlone = false
    /// Called on the writing thread after the commit, or with why there was none.
    let done: @Sendable (DatabaseError?) -> Void
  }

  private struct Queue {
    var jobs: [Job] = []
    var isClosing = false
  }

  /// A reader's own connection. The lock is never contended: it is lent to one thread at a time.
  private final class Reader: Sendable {
    let connection: Locked<Connection>

    init(_ path: String) throws(DatabaseError) {
      connection = Locked(try Connection(path, readOnly: true))
    }
  }

  private let path: String
  private let queue = Locked(Queue())
  private let idle = Locked([Reader]())
  private let writer: Thread

  /// Takes over a connection whose schema is right, and starts the writing thread.
  ///
  /// - Throws: `Errno` when the system refuses a thread.
  package init(_ path: String, _ connection: consuming Connection) throws(Errno) {
    self.path = path
    let connection = Locked<Connection?>(connection)
    let queue = self.queue
    writer = try Thread(name: "committer") { Self.write(queue, connection) }
  }

  /// Writes what is queued, and ends the thread; the file is then one file again, without a log.
  ///
  /// Later writes are refused, later reads fail.
  package func close() {
    queue.withLock { $0.isClosing = true }
    queue.wakeAll()
    idle.withLock { $0 = [] }
    writer.join()
  }

  /// Queues a piece of writing and returns at once.
  ///
  /// - Parameter done: called on the writing thread after the commit, or with why there was none.
  package func enqueue(
    _ work: @escaping Work, done: @escaping @Sendable (DatabaseError?) -> Void = { _ in }
  ) {
    enqueue(Job(work: work, done: done))
  }

  private func enqueue(_ job: Job) {
    let accepted = queue.withLock { queue -> Bool in
      if queue.isClosing { return false }
      queue.jobs.append(job)
      return true
    }
    if accepted {
      queue.wakeAll()
    } else {
      job.done(Self.closed)
    }
  }

  /// Rewrites the file without the room that removed rows left (VACUUM), and waits for it.
  ///
  /// Never on the fast lane, and never on the writing thread.
  package func compact() throws(DatabaseError) {
    let outcome = Locked<DatabaseError??>(nil)
    enqueue(
      Job(
        work: { (connection) throws(DatabaseError) in
          try connection.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        }, isAlone: true,
        done: { error in
          outcome.withLock { $0 = .some(error) }
          outcome.wakeAll()
        }))
    let failure = outcome.wait { (state) -> DatabaseError?? in state }
    if case .some(.some(let error)) = failure { throw error }
  }

  /// Writes and waits for the commit. Never on the fast lane, and never on the writing thread.
  package func write<Result: Sendable>(
    _ body: @escaping @Sendable (inout Connection) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    let value = Locked<Result?>(nil)
    let outcome = Locked<DatabaseError??>(nil)
    enqueue { (connection) throws(DatabaseError) in
      let result = try body(&connection)
      value.withLock { $0 = result }
    } done: { error in
      outcome.withLock { $0 = .some(error) }
      outcome.wakeAll()
    }
    let failure = outcome.wait { (state) -> DatabaseError?? in state }
    if case .some(.some(let error)) = failure { throw error }
    guard let result = value.withLock({ $0 }) else { throw Self.closed }
    return result
  }

  /// Reads through a connection of the caller's own; sees every commit made before.
  package func read<Result: Sendable>(
    _ body: (inout Connection) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    let reader = try lend()
    defer { idle.withLock { if $0.count < 16 { $0.append(reader) } } }
    return try reader.connection.withLock { (connection) throws(DatabaseError) in
      try body(&connection)
    }
  }

  private func lend() throws(DatabaseError) -> Reader {
    if let reader = idle.withLock({ $0.popLast() }) { return reader }
    return try Reader(path)
  }

  private static let closed = DatabaseError(code: 21, message: "the database is closed")

  private static func write(_ queue: Locked<Queue>, _ connection: Locked<Connection?>) {
    while true {
      let jobs = queue.wait { queue -> [Job]? in
        if queue.jobs.isEmpty { return queue.isClosing ? [] : nil }
        defer { queue.jobs = [] }
        return queue.jobs
      }
      guard let jobs, !jobs.isEmpty else { break }
      let outcomes = connection.withLock { connection -> [DatabaseError?] in
        guard var open = connection.take() else { return jobs.map { _ in closed } }
        let outcomes = run(jobs, &open)
        connection = consume open
        return outcomes
      }
      for (job, outcome) in zip(jobs, outcomes) { job.done(outcome) }
    }
    // Closes it here, so that whoever joins the thread finds the log folded into the file.
    connection.withLock { $0 = nil }
  }

  private static func run(_ jobs: [Job], _ connection: inout Connection) -> [DatabaseError?] {
    var outcomes: [DatabaseError?] = []
    var rest = jobs[...]
    while let first = rest.first {
      guard first.isAlone else {
        let together = rest.prefix { !$0.isAlone }
        outcomes += commit(Array(together), &connection)
        rest = rest.dropFirst(together.count)
        continue
      }
      rest.removeFirst()
      do throws(DatabaseError) {
        try first.work(&connection)
        outcomes.append(nil)
      } catch {
        outcomes.append(error)
      }
    }
    return outcomes
  }

  private static func commit(_ jobs: [Job], _ connection: inout Connection) -> [DatabaseError?] {
    do throws(DatabaseError) {
      return try connection.transaction { (connection) throws(DatabaseError) in
        var outcomes: [DatabaseError?] = []
        for job in jobs {
          do throws(DatabaseError) {
            try connection.transaction(job.work)
            outcomes.append(nil)
          } catch {
            outcomes.append(error)
          }
        }
        return outcomes
      }
    } catch {
      return jobs.map { _ in error }
    }
  }
}
