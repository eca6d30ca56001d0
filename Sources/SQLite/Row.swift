import CSQLite
package import Platform

/// One row of a result. Good only inside the closure that it is handed to.
///
/// Columns count from zero. A column of another type is converted as
/// https://www.sqlite.org/c3ref/column_blob.html tells.
package struct Row {
  let statement: OpaquePointer

  /// Whether the column is NULL.
  package func isNull(_ column: Int32) -> Bool {
    sqlite3_column_type(statement, column) == SQLITE_NULL
  }

  /// The column as a whole number; 0 for NULL.
  package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

  /// The column as a whole number; nil for NULL.
  package func integerOrNull(_ column: Int32) -> Int64? {
    isNull(column) ? nil : integer(column)
  }

  /// Whether the column is a number other than 0.
  package func flag(_ column: Int32) -> Bool { integer(column) != 0 }

  /// The column as text; empty for NULL.
  package func text(_ column: Int32) -> String { textOrNull(column) ?? "" }

  /// The column as text; nil for NULL.
  package func textOrNull(_ column: Int32) -> String? {
    sqlite3_column_text(statement, column).map { String(cString: $0) }
  }

  /// The column's bytes; none for NULL.
  package func blob(_ column: Int32) -> [UInt8] {
    guard let start = sqlite3_column_blob(statement, column) else { return [] }
    let count = Int(sqlite3_column_bytes(statement, column))
    return Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// The column's bytes as a name or key.
  package func name(_ column: Int32) -> ByteString { ByteString(blob(column)) }

  /// The column as nanoseconds since 1970-01-01 UTC.
  package func time(_ column: Int32) -> Timestamp { Timestamp(nanoseconds: integer(column)) }

  /// The column as nanoseconds since 1970-01-01 UTC; nil for NULL.
  package func timeOrNull(_ column: Int32) -> Timestamp? {
    isNull(column) ? nil : time(column)
  }
}
