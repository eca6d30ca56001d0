import CSQLite
import Platform

/// A connection to one database file, with its prepared statements.
///
/// Opened without SQLite's own mutexes (https://www.sqlite.org/threadsafe.html, multi-thread mode).
///
/// `@unchecked Sendable`: it cannot be copied and every use of it is mutating, so the compiler
/// grants it to one thread at a time; SQLite allows the thread to change between calls.
package struct Connection: ~Copyable, @unchecked Sendable {
  private let database: OpaquePointer
  /// Whether it is of no file: gone when this connection is.
  package let isInMemory: Bool
  private var statements: [String: Statement] = [:]

  /// Opens a database file, and makes it unless `readOnly`.
  ///
  /// The connection writes ahead (WAL), waits up to ten seconds for another's lock, and syncs at
  /// checkpoints alone: after a power cut the newest transactions may be missing, never halves.
  package init(_ path: String, readOnly: Bool = false) throws(DatabaseError) {
    database = try Self.open(path, readOnly: readOnly)
    isInMemory = false
  }

  /// Opens an empty database that lives as long as this connection.
  package init() throws(DatabaseError) {
    database = try Self.open(":memory:", readOnly: false)
    isInMemory = true
  }

  /// Takes over all that a file holds, as far as its log was folded into it
  /// (https://www.sqlite.org/backup.html). The file may lie where nothing can be written.
  package mutating func load(_ path: String) throws(DatabaseError) {
    var source: OpaquePointer?
    defer { sqlite3_close_v2(source) }
    let name = "file:" + Percent.encodePath(ByteString(path)) + "?immutable=1"
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX
    guard sqlite3_open_v2(name, &source, flags, nil) == SQLITE_OK,
      let backup = sqlite3_backup_init(database, "main", source, "main")
    else { throw .last(source) }
    sqlite3_backup_step(backup, -1)
    guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw .last(database) }
  }

  /// Writes all that this connection's database holds into a file that exists, in place of what that
  /// holds (https://www.sqlite.org/backup.html). Nothing of it is durable yet.
  package mutating func save(to path: String) throws(DatabaseError) {
    var target: OpaquePointer?
    defer { sqlite3_close_v2(target) }
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW
    guard sqlite3_open_v2(path, &target, flags, nil) == SQLITE_OK,
      let backup = sqlite3_backup_init(target, "main", database, "main")
    else { throw .last(target) }
    sqlite3_backup_step(backup, -1)
    guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw .last(target) }
  }

  /// Runs `body` with this connection.
  mutating func apply<Result>(
    _ body: (inout Connection) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try body(&self)
  }

  private static func open(_ path: String, readOnly: Bool) throws(DatabaseError) -> OpaquePointer {
    var handle: OpaquePointer?
    let access = readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    var code = sqlite3_open_v2(
      path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, nil)
    if code == SQLITE_OK {
      sqlite3_extended_result_codes(handle, 1)
      sqlite3_busy_timeout(handle, 10_000)
      let mode =
        readOnly
        ? "PRAGMA query_only = 1" : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
      code = sqlite3_exec(
        handle, mode + "; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON", nil, nil, nil)
    }
    guard code == SQLITE_OK, let handle else {
      let error = DatabaseError.last(handle)
      sqlite3_close_v2(handle)
      throw error
    }
    return handle
  }

  deinit {
    // Statements are finalized after this when the dictionary goes; close_v2 waits for them.
    sqlite3_close_v2(database)
  }

  /// Runs one or more statements that take no values and give no rows.
  package mutating func execute(_ script: String) throws(DatabaseError) {
    guard sqlite3_exec(database, script, nil, nil, nil) == SQLITE_OK else {
      throw .last(database, sql: script)
    }
  }

  /// Runs one statement; rows that it gives are passed over.
  package mutating func run(_ sql: String, _ values: Value...) throws(DatabaseError) {
    try prepared(sql).run(values) { _ in true }
  }

  /// All rows of a query, each read by `body`.
  package mutating func rows<Element>(
    _ sql: String, _ values: Value..., read body: (Row) -> Element
  ) throws(DatabaseError) -> [Element] {
    var result: [Element] = []
    try prepared(sql).run(values) { row in
      result.append(body(row))
      return true
    }
    return result
  }

  /// The first row of a query, read by `body`; nil when there is none.
  package mutating func first<Element>(
    _ sql: String, _ values: Value..., read body: (Row) -> Element
  ) throws(DatabaseError) -> Element? {
    var result: Element?
    try prepared(sql).run(values) { row in
      result = body(row)
      return false
    }
    return result
  }

  /// Hands the rows of a query to `body`, one after the other, until it returns false.
  package mutating func forEach(
    _ sql: String, _ values: Value..., body: (Row) -> Bool
  ) throws(DatabaseError) {
    try prepared(sql).run(values, body)
  }

  /// How many rows the last INSERT, UPDATE or DELETE changed.
  package var changes: Int64 {
    mutating get { sqlite3_changes64(database) }
  }

  /// The row id that the last INSERT made.
  package var lastRowID: Int64 {
    mutating get { sqlite3_last_insert_rowid(database) }
  }

  /// Runs `body` in a transaction (a savepoint inside another one): all of it or nothing.
  package mutating func transaction<Result: Sendable>(
    _ body: (inout Connection) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    let isOuter = sqlite3_get_autocommit(database) != 0
    try execute(isOuter ? "BEGIN IMMEDIATE" : "SAVEPOINT part")
    do throws(DatabaseError) {
      let result = try body(&self)
      try execute(isOuter ? "COMMIT" : "RELEASE part")
      return result
    } catch {
      // SQLite may have rolled back by itself (disk full), and then there is nothing to undo.
      if sqlite3_get_autocommit(database) == 0 {
        try execute(isOuter ? "ROLLBACK" : "ROLLBACK TO part; RELEASE part")
      }
      throw error
    }
  }

  private mutating func prepared(_ sql: String) throws(DatabaseError) -> Statement {
    if let statement = statements[sql] { return statement }
    let statement = try Statement(database, sql)
    statements[sql] = statement
    return statement
  }
}
