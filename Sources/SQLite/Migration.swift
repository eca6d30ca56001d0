/// One step of a schema's history. Once released it is never edited; a change is a new step.
package struct Migration: Sendable {
  /// The value of `user_version` after it; the first is 1, each one more than the last.
  package let version: Int64
  /// What it does, for the log.
  package let name: String
  /// The statements.
  package let script: String

  package init(_ version: Int64, _ name: String, _ script: String) {
    self.version = version
    self.name = name
    self.script = script
  }
}

/// The database was written by a newer program.
package struct NewerSchema: Error, Sendable, Equatable {
  /// The file's `user_version`.
  package let found: Int64
  /// The last version that this program knows.
  package let known: Int64
}

extension Connection {
  /// The schema's version, kept in the file's header.
  package mutating func schemaVersion() throws(DatabaseError) -> Int64 {
    try first("PRAGMA user_version") { $0.integer(0) } ?? 0
  }

  /// Brings the schema up to the last step, each step in a transaction of its own.
  ///
  /// - Returns: nil, or the versions when the file is of a newer schema; then nothing is changed.
  package mutating func migrate(_ migrations: [Migration]) throws(DatabaseError) -> NewerSchema? {
    let found = try schemaVersion()
    let known = migrations.last?.version ?? 0
    if found > known { return NewerSchema(found: found, known: known) }
    for migration in migrations where migration.version > found {
      try transaction { (connection) throws(DatabaseError) in
        try connection.execute(migration.script)
        try connection.execute("PRAGMA user_version = \(migration.version)")
      }
    }
    return nil
  }

  /// Whether the pages of the file agree with each other (PRAGMA quick_check).
  package mutating func isSound() throws(DatabaseError) -> Bool {
    try first("PRAGMA quick_check(1)") { $0.text(0) } == "ok"
  }
}
