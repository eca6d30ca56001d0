import Platform
import SQLite

/// What persons have set on files, as far as an index that is damaged still gives it.
///
/// Unlike all else in the index it cannot be had again from anywhere.
struct RescuedAttributes {
  private var rows: [[Value]] = []

  /// - Parameter identity: whose index it must be; another's gives nothing.
  init(_ path: String, identity: String) {
    do throws(DatabaseError) {
      var connection = try Connection(path)
      let owner = try connection.first("SELECT value FROM facts WHERE name = 'identity'") {
        $0.text(0)
      }
      guard owner == identity else { return }
      try connection.forEach(
        "SELECT bucket, folder, name, tag, size, modified, mode, extended FROM attributes"
      ) { row in
        rows.append([
          .name(row.name(0)), .name(row.name(1)), .name(row.name(2)),
          .text(orNull: row.textOrNull(3)), .integer(orNull: row.integerOrNull(4)),
          .integer(orNull: row.integerOrNull(5)), .integer(orNull: row.integerOrNull(6)),
          .blob(row.blob(7)),
        ])
        return true
      }
    } catch {
      // Rows that came before the damage count.
      Log.debug("not all attributes could be read: \(error)")
    }
  }

  /// Writes them into another index.
  func save(in connection: inout Connection) throws(DatabaseError) {
    for row in rows {
      try connection.run(
        "INSERT OR IGNORE INTO attributes "
          + "(bucket, folder, name, tag, size, modified, mode, extended) "
          + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7])
    }
  }
}
