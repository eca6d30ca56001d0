import Glibc
package import Platform

/// One database: one writing thread with batched transactions, and a connection for each reader.
///
/// Whatever is queued while a transaction runs goes into the next one together; each piece has its
/// own savepoint, so that one that fails takes no other along. Damage that shows itself, or a file
/// that somebody removed, leads to a new file. One in memory has a single connection, which readers
/// take turns with.
package final class Database: Sendable {
  /// A piece of writing. Runs on the writing thread; it may touch local files too, which puts file
  /// and row in one order for all.
  package typealias Work = @Sendable (inout Connection) throws(DatabaseError) -> Void
  /// Makes the database anew, with all that is known without it. Runs on the writing thread.
  package typealias Remake = @Sendable () throws(DatabaseError) -> Connection
  /// Writes a database that is in memory into the file, whole or not at all. Runs on the writing
  /// thread.
  package typealias Keep = @Sendable (inout Connection) throws(DatabaseError) -> Void

  private struct Job {
    let work: Work
    /// Whether it must not run within a transaction.
    var isAlone = false
    /// Whether it may be run once more: it touches nothing but the database.
    var isRepeatable = false
    /// Called on the writing thread after the commit, or with why there was none.
    let done: @Sendable (DatabaseError?) -> Void
  }

  private struct Queue {
    var jobs: [Job] = []
    var isSpoilt = false
    var keep: Keep?
    var isClosing = false
  }

  /// A reader's own connection. The lock is never contended: it is lent to one thread at a time.
  private final class Reader: Sendable {
    let connection: Locked<Connection>
    let generation: Int

    init(_ path: String, _ generation: Int) throws(DatabaseError) {
      connection = Locked(try Connection(path, readOnly: true))
      self.generation = generation
    }
  }

  private struct Readers {
    var idle: [Reader] = []
    /// Counts how often the file was made anew.
    var generation = 0
    /// The file that the writer has open; nil in memory.
    var file: FileNumber?
    /// Its log, once that was seen.
    var log: FileNumber?
    /// Whether a connection that comes back is closed.
    var isClosing = false
  }

  /// What tells a file from another one of its name.
  private struct FileNumber: Equatable {
    let device: UInt
    let inode: UInt

    init?(_ path: String) {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      device = UInt(status.st_dev)
      inode = UInt(status.st_ino)
    }
  }

  private let path: String
  private let remake: Remake?
  private let queue = Locked(Queue())
  private let readers = Locked(Readers())
  private let connection: Locked<Connection?>
  private let writer = Locked<Thread?>(nil)

  /// Takes over a connection whose schema is right, and starts the writing thread.
  ///
  /// - Parameter remake: how the database is made anew; without it damage stays.
  /// - Throws: `Errno` when the system refuses a thread.
  package init(_ path: String, _ connection: consuming Connection, remake: Remake? = nil)
    throws(Errno)
  {
    self.path = path
    self.remake = remake
    let file = connection.isInMemory ? nil : FileNumber(path)
    self.connection = Locked<Connection?>(connection)
    readers.withLock { $0.file = file }
    let thread = try Thread(name: "committer") { [self] in write() }
    writer.withLock { $0 = thread }
  }

  /// Whether it is of no file, and gone once it is closed.
  package var isInMemory: Bool { readers.withLock { $0.file == nil } }

  /// Writes what is queued, and ends the thread; the file is then one file again, without a log.
  ///
  /// Later writes are refused, later reads fail.
  package func close() {
    queue.withLock { $0.isClosing = true }
    queue.wakeAll()
    readers.withLock { readers in
      readers.idle = []
      readers.isClosing = true
    }
    writer.withLock({ $0 })?.join()
  }

  /// Makes the file anew where it is not the one that was opened any more, or has lost its log.
  package func checkFile() {
    guard let file = readers.withLock({ $0.file }) else { return }
    let log = FileNumber(path + "-wal")
    let isWhole = readers.withLock { readers -> Bool in
      // SQLite keeps a log that it has begun as long as the file is open.
      if readers.log == nil { readers.log = log }
      return readers.log == log
    }
    if FileNumber(path) == file, isWhole { return }
    spoil(DatabaseError(code: 14, message: "\(path) was removed or replaced"))
  }

  /// Goes on in the file with a database that is in memory, since a file can be made again.
  ///
  /// While it cannot, nothing changes, the old file neither.
  package func renew(_ keep: @escaping Keep) {
    guard isInMemory else { return }
    queue.withLock { $0.keep = keep }
    queue.wakeAll()
  }

  /// Has the database made anew.
  private func spoil(_ error: DatabaseError) {
    guard remake != nil else { return }
    let isFirst = queue.withLock { queue -> Bool in
      defer { queue.isSpoilt = true }
      return !queue.isSpoilt && !queue.isClosing
    }
    guard isFirst else { return }
    Log.warning("\(path) is made anew: \(error)")
    queue.wakeAll()
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
  ///
  /// `body` touches nothing but the database: it is run twice where that had to be made anew.
  package func write<Result: Sendable>(
    _ body: @escaping @Sendable (inout Connection) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    let value = Locked<Result?>(nil)
    let outcome = Locked<DatabaseError??>(nil)
    let work: Work = { (connection) throws(DatabaseError) in
      let result = try body(&connection)
      value.withLock { $0 = result }
    }
    enqueue(
      Job(work: work, isRepeatable: true) { error in
        outcome.withLock { $0 = .some(error) }
        outcome.wakeAll()
      })
    let failure = outcome.wait { (state) -> DatabaseError?? in state }
    if case .some(.some(let error)) = failure { throw error }
    guard let result = value.withLock({ $0 }) else { throw Self.closed }
    return result
  }

  /// Reads through a connection of the caller's own; sees every commit made before.
  package func read<Result: Sendable>(
    _ body: (inout Connection) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    do throws(DatabaseError) {
      guard let reader = try lend() else {
        guard
          let result = try connection.withLock({ (connection) throws(DatabaseError) in
            try connection?.apply(body)
          })
        else { throw Self.closed }
        return result
      }
      defer { giveBack(reader) }
      return try reader.connection.withLock { (connection) throws(DatabaseError) in
        try body(&connection)
      }
    } catch {
      if error.isDamage { spoil(error) }
      throw error
    }
  }

  /// - Returns: nil where the database is in memory.
  private func lend() throws(DatabaseError) -> Reader? {
    let (idle, file, generation) = readers.withLock { ($0.idle.popLast(), $0.file, $0.generation) }
    if let idle { return idle }
    guard let file else { return nil }
    guard FileNumber(path) == file else {
      let error = DatabaseError(code: 14, message: "\(path) was removed or replaced")
      spoil(error)
      throw error
    }
    return try Reader(path, generation)
  }

  private func giveBack(_ reader: Reader) {
    readers.withLock { readers in
      guard !readers.isClosing, reader.generation == readers.generation, readers.idle.count < 16
      else { return }
      readers.idle.append(reader)
    }
  }

  private static let closed = DatabaseError(code: 21, message: "the database is closed")

  private func write() {
    while true {
      let (jobs, isSpoilt, keep) =
        queue.wait { queue -> ([Job], Bool, Keep?)? in
          if queue.jobs.isEmpty, !queue.isSpoilt, queue.keep == nil {
            return queue.isClosing ? ([], false, nil) : nil
          }
          defer {
            queue.jobs = []
            queue.isSpoilt = false
            queue.keep = nil
          }
          return (queue.jobs, queue.isSpoilt, queue.keep)
        } ?? ([], false, nil)
      if jobs.isEmpty, !isSpoilt, keep == nil { break }
      if isSpoilt { makeAnew() }
      if let keep, isInMemory { moveIntoFile(keep) }
      for (job, outcome) in zip(jobs, run(jobs)) { job.done(outcome) }
    }
    // Closes it here, so that whoever joins the thread finds the log folded into the file: SQLite
    // does that by itself only where no reader is left.
    connection.withLock { connection in
      do throws(DatabaseError) {
        try connection?.execute("PRAGMA wal_checkpoint(PASSIVE)")
      } catch {
        Log.debug("the log of \(path) stays beside it: \(error)")
      }
      connection = nil
    }
  }

  /// Runs jobs; those that met damage and may be repeated are, once the database was made anew.
  private func run(_ jobs: [Job]) -> [DatabaseError?] {
    var outcomes = commit(jobs)
    guard remake != nil, let damage = outcomes.compactMap({ $0 }).first(where: \.isDamage) else {
      return outcomes
    }
    Log.warning("\(path) is made anew: \(damage)")
    makeAnew()
    let repeated = jobs.indices.filter { outcomes[$0] != nil && jobs[$0].isRepeatable }
    for (index, outcome) in zip(repeated, commit(repeated.map { jobs[$0] })) {
      outcomes[index] = outcome
    }
    return outcomes
  }

  private func commit(_ jobs: [Job]) -> [DatabaseError?] {
    connection.withLock { connection in
      var outcomes: [DatabaseError?] = []
      var rest = jobs[...]
      while let first = rest.first {
        let together = first.isAlone ? rest.prefix(1) : rest.prefix { !$0.isAlone }
        let works = together.map(\.work)
        outcomes +=
          (first.isAlone ? connection?.runAlone(works) : connection?.commit(works))
          ?? together.map { _ in Self.closed }
        rest = rest.dropFirst(together.count)
      }
      return outcomes
    }
  }

  /// The old connection goes first: it holds locks on the old file.
  private func makeAnew() {
    guard let remake else { return }
    connection.withLock { $0 = nil }
    readers.withLock { readers in
      readers.idle = []
      readers.generation += 1
    }
    do throws(DatabaseError) {
      let made = try remake()
      let file = made.isInMemory ? nil : FileNumber(path)
      install(made)
      readers.withLock { readers in
        readers.file = file
        readers.log = nil
      }
    } catch {
      Log.error("\(path) cannot be made anew: \(error)")
    }
  }

  private func moveIntoFile(_ keep: Keep) {
    do throws(DatabaseError) {
      try connection.withLock { (connection) throws(DatabaseError) in
        try connection?.apply(keep)
      }
      install(try Connection(path))
      let file = FileNumber(path)
      readers.withLock { readers in
        readers.file = file
        readers.log = nil
        readers.generation += 1
      }
      Log.info("\(path) is written again, with all that was in memory alone")
    } catch {
      Log.info("\(path) cannot be written yet: \(error)")
    }
  }

  private func install(_ made: consuming Connection) {
    let made = Locked<Connection?>(made)
    connection.withLock { connection in
      connection = made.withLock { $0.take() }
    }
  }
}

extension Connection {
  /// Runs each piece without a transaction around it.
  fileprivate mutating func runAlone(_ works: [Database.Work]) -> [DatabaseError?] {
    var outcomes: [DatabaseError?] = []
    for work in works {
      do throws(DatabaseError) {
        try work(&self)
        outcomes.append(nil)
      } catch {
        outcomes.append(error)
      }
    }
    return outcomes
  }

  /// Runs each piece in a savepoint, all of them in one transaction.
  fileprivate mutating func commit(_ works: [Database.Work]) -> [DatabaseError?] {
    do throws(DatabaseError) {
      return try transaction { (connection) throws(DatabaseError) in
        var outcomes: [DatabaseError?] = []
        for work in works {
          do throws(DatabaseError) {
            try connection.transaction(work)
            outcomes.append(nil)
          } catch {
            outcomes.append(error)
          }
        }
        return outcomes
      }
    } catch {
      return works.map { _ in error }
    }
  }
}
