import Platform
import Testing
import TestSupport

@testable import SQLite

@Suite struct ConnectionTests {
  let scratch: Scratch
  var path: String { scratch.path("test.db") }

  init() throws {
    scratch = try Scratch()
  }

  @Test func valuesComeBackAsTheyWereBound() throws {
    var connection = try Connection(path)
    try connection.execute("CREATE TABLE t (a, b, c, d, e)")
    let name = ByteString([0xC3, 0x00, 0xFF, 0x2F])
    try connection.run(
      "INSERT INTO t VALUES (?, ?, ?, ?, ?)", .integer(.min), .text("ü'\"\n"), .name(name), .null,
      .blob([]))
    let row = try connection.first("SELECT * FROM t") { row in
      (row.integer(0), row.text(1), row.name(2), row.isNull(3), row.isNull(4), row.blob(4))
    }
    let found = try #require(row)
    #expect(found.0 == .min)
    #expect(found.1 == "ü'\"\n")
    #expect(found.2 == name)
    #expect(found.3)
    #expect(!found.4, "an empty name is no NULL")
    #expect(found.5.isEmpty)
  }

  @Test func namesAreComparedBytewise() throws {
    var connection = try Connection(path)
    try connection.execute("CREATE TABLE t (k BLOB PRIMARY KEY) WITHOUT ROWID")
    let composed = ByteString("\u{FC}")
    let decomposed = ByteString("u\u{308}")
    try connection.run("INSERT INTO t VALUES (?)", .name(composed))
    try connection.run("INSERT INTO t VALUES (?)", .name(decomposed))
    let names = try connection.rows("SELECT k FROM t ORDER BY k") { $0.name(0) }
    #expect(names == [decomposed, composed])
  }

  @Test func anErrorNamesTheStatementButNoValue() throws {
    var connection = try Connection(path)
    try connection.execute("CREATE TABLE t (k TEXT PRIMARY KEY)")
    try connection.run("INSERT INTO t VALUES (?)", .text("secret"))
    let error = #expect(throws: DatabaseError.self) {
      try connection.run("INSERT INTO t VALUES (?)", .text("secret"))
    }
    #expect(error?.sql == "INSERT INTO t VALUES (?)")
    #expect(error?.code == 1555)
    #expect("\(try #require(error))".contains("secret") == false)
  }

  @Test func aTransactionThatFailsLeavesNothingBehind() throws {
    var connection = try Connection(path)
    try connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    #expect(throws: DatabaseError.self) {
      try connection.transaction { (connection) throws(DatabaseError) in
        try connection.run("INSERT INTO t VALUES (1)")
        try connection.run("INSERT INTO t VALUES (1)")
      }
    }
    try connection.transaction { (connection) throws(DatabaseError) in
      try connection.run("INSERT INTO t VALUES (2)")
      do throws(DatabaseError) {
        try connection.transaction { (connection) throws(DatabaseError) in
          try connection.run("INSERT INTO t VALUES (3)")
          try connection.run("INSERT INTO t VALUES (2)")
        }
      } catch {
        #expect(error.code == 1555)
      }
    }
    #expect(try connection.rows("SELECT k FROM t") { $0.integer(0) } == [2])
  }

  @Test func aFileThatIsNoDatabaseIsDamage() throws {
    try scratch.file("test.db", Array(repeating: 0x41, count: 8192))
    let error = #expect(throws: DatabaseError.self) {
      var connection = try Connection(path)
      _ = try connection.schemaVersion()
    }
    #expect(error?.isDamage == true)
  }

  @Test func aSymlinkIsNotOpened() throws {
    try scratch.file("real.db", [])
    #expect(symlinked(scratch.path("real.db"), path))
    #expect(throws: DatabaseError.self) { _ = try Connection(path) }
  }

  @Test func migrationsRunOnceAndInOrder() throws {
    let first = Migration(1, "one", "CREATE TABLE t (k)")
    let second = Migration(2, "two", "ALTER TABLE t ADD COLUMN v; INSERT INTO t VALUES (1, 2)")
    var connection = try Connection(path)
    #expect(try connection.migrate([first]) == nil)
    #expect(try connection.migrate([first, second]) == nil)
    #expect(try connection.migrate([first, second]) == nil)
    #expect(try connection.schemaVersion() == 2)
    #expect(try connection.rows("SELECT v FROM t") { $0.integer(0) } == [2])
  }

  @Test func aMigrationThatFailsLeavesTheVersionBeforeIt() throws {
    let first = Migration(1, "one", "CREATE TABLE t (k)")
    let broken = Migration(2, "two", "CREATE TABLE u (k); CREATE TABLE t (k)")
    var connection = try Connection(path)
    #expect(throws: DatabaseError.self) { _ = try connection.migrate([first, broken]) }
    #expect(try connection.schemaVersion() == 1)
    let tables = try connection.rows("SELECT name FROM sqlite_schema ORDER BY name") { $0.text(0) }
    #expect(tables == ["t"])
  }

  @Test func aNewerSchemaIsReportedAndLeftAlone() throws {
    var connection = try Connection(path)
    try connection.execute("PRAGMA user_version = 7")
    let newer = try connection.migrate([Migration(1, "one", "CREATE TABLE t (k)")])
    #expect(newer == NewerSchema(found: 7, known: 1))
    #expect(try connection.schemaVersion() == 7)
  }
}
