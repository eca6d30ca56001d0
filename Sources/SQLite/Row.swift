import CSQLite
package import Platform

/// One row of a result. Good only inside the closure that it is handed to.
///
/// Columns count from zero. A column of another type is converted as
/// https://www.sqlite.org/c3ref/column_blob.html tells.
package struct Row {
  let statement: OpaquePointer

  package func isNull(_ column: Int32) -> Bool {
    sqlite3_column_type(statement, column) == SQLITE_NULL
  }

  package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

  package func integerOrNull(_ column: Int32) -> Int64? {
    isNull(column) ? nil : integer(column)
  }

  package func flag(_ column: Int32) -> Bool { integer(column) != 0 }

  package func text(_ column: Int32) -> String { textOrNull(column) ?? "" }

  package func textOrNull(_ column: Int32) -> String? {
    sqlite3_column_text(statement, column).map { String(cString: $0) }
  }

  package func blob(_ column: Int32) -> [UInt8] {
    guard let start = sqlite3_column_blob(statement, column) else { return [] }
    let count = Int(sqlite3_column_bytes(statement, column))
    return Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  package func name(_ column: Int32) -> ByteString { ByteString(blob(column)) }

  package func time(_ column: Int32) -> Timestamp { Timestamp(nanoseconds: integer(column)) }

  package func timeOrNull(_ column: Int32) -> Timestamp? {
    isNull(column) ? nil : time(column)
  }
}
