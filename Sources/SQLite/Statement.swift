import CSQLite

/// A prepared statement, kept by its connection for the next use.
///
/// A class, since a dictionary of noncopyable values cannot be. Guarded by its connection, which
/// alone holds it.
final class Statement {
  private let database: OpaquePointer
  private let handle: OpaquePointer
  private let sql: String

  init(_ database: OpaquePointer, _ sql: String) throws(DatabaseError) {
    var handle: OpaquePointer?
    let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
    guard sqlite3_prepare_v3(database, sql, -1, flags, &handle, nil) == SQLITE_OK, let handle
    else { throw .last(database, sql: sql) }
    self.database = database
    self.handle = handle
    self.sql = sql
  }

  deinit {
    sqlite3_finalize(handle)
  }

  /// Runs the statement, handing each row to `body` until it returns false.
  func run(_ values: [Value], _ body: (Row) -> Bool) throws(DatabaseError) {
    defer {
      sqlite3_reset(handle)
      sqlite3_clear_bindings(handle)
    }
    for (index, value) in values.enumerated() {
      guard bind(value, Int32(index + 1)) == SQLITE_OK else { throw .last(database, sql: sql) }
    }
    while true {
      switch sqlite3_step(handle) {
      case SQLITE_ROW:
        if !body(Row(statement: handle)) { return }
      case SQLITE_DONE: return
      default: throw .last(database, sql: sql)
      }
    }
  }

  private func bind(_ value: Value, _ index: Int32) -> Int32 {
    switch value {
    case .null: sqlite3_bind_null(handle, index)
    case .integer(let number): sqlite3_bind_int64(handle, index, number)
    case .text(let text):
      sqlite3_bind_text(handle, index, text, -1, bucketfs_sqlite_transient())
    case .blob(let bytes):
      bytes.withUnsafeBytes { buffer in
        // A null pointer would bind NULL where an empty name is meant.
        buffer.isEmpty
          ? sqlite3_bind_zeroblob(handle, index, 0)
          : sqlite3_bind_blob64(
            handle, index, buffer.baseAddress, UInt64(buffer.count), bucketfs_sqlite_transient())
      }
    }
  }
}
