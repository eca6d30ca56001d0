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

  /// Whether the file is no database, one whose pages contradict each other, or one of which
  /// something is missing.
  package var isDamage: Bool {
    switch code & 0xFF {
    case SQLITE_CORRUPT, SQLITE_NOTADB: true
    case SQLITE_IOERR: code == SQLITE_IOERR | 2 << 8  // SQLITE_IOERR_SHORT_READ
    case SQLITE_ERROR: message.hasPrefix("no such table") || message.hasPrefix("no such column")
    default: false
    }
  }

  /// Whether the file cannot be written, or not be made: no room, no permission, a read-only disk.
  package var isRefusal: Bool {
    switch code & 0xFF {
    case SQLITE_FULL, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_IOERR, SQLITE_PERM: !isDamage
    default: false
    }
  }

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
