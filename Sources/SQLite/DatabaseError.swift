import CSQLite

/// A failure of SQLite, with its own words and the statement, never the values.
package struct DatabaseError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The extended result code (https://www.sqlite.org/rescode.html).
  package let code: CInt
  /// The words of sqlite3_errmsg().
  package let message: String
  /// The statement that failed; empty when none was at work.
  package let sql: String

  package init(code: CInt, message: String, sql: String = "") {
    self.code = code
    self.message = message
    self.sql = sql
  }

  /// Whether the file is no database, or one whose pages contradict each other.
  package var isDamage: Bool {
    let primary = code & 0xFF
    return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB
  }

  /// Whether the disk or the quota was full.
  package var isNoSpace: Bool { code & 0xFF == SQLITE_FULL }

  package var description: String {
    sql.isEmpty ? "\(message) (\(code))" : "\(message) (\(code)) in: \(sql)"
  }

  /// The error that the last call on this connection left behind.
  static func last(_ database: OpaquePointer?, sql: String = "") -> DatabaseError {
    DatabaseError(
      code: sqlite3_extended_errcode(database), message: String(cString: sqlite3_errmsg(database)),
      sql: sql)
  }
}
