import Foundation
import Platform
import SQLite
import Testing
import TestSupport

func symlinked(_ target: String, _ path: String) -> Bool { symlink(target, path) == 0 }

@Suite struct DatabaseTests {
  let scratch: Scratch
  let database: Database
  var path: String { scratch.path("test.db") }

  init() throws {
    scratch = try Scratch()
    var connection = try Connection(scratch.path("test.db"))
    try connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    database = try Database(scratch.path("test.db"), connection)
  }

  private func keys() throws -> [Int64] {
    try database.read { (connection) throws(DatabaseError) in
      try connection.rows("SELECT k FROM t ORDER BY k") { $0.integer(0) }
    }
  }

  @Test func aReaderSeesWhatWasWritten() throws {
    let count = try database.write { (connection) throws(DatabaseError) -> Int64 in
      try connection.run("INSERT INTO t VALUES (1), (2)")
      return connection.changes
    }
    #expect(count == 2)
    #expect(try keys() == [1, 2])
    database.close()
  }

  @Test func compactingGivesTheRoomBackAndKeepsItsPlaceInTheOrder() throws {
    let gate = Locked(false)
    try database.write { (connection) throws(DatabaseError) in
      try connection.execute("CREATE TABLE big (bytes BLOB)")
      for _ in 0..<500 { try connection.run("INSERT INTO big VALUES (zeroblob(4096))") }
    }
    database.enqueue { (_) throws(DatabaseError) in _ = gate.wait { $0 ? true : nil } }
    database.enqueue { (connection) throws(DatabaseError) in
      try connection.execute("DROP TABLE big")
    }
    let opener = try Platform.Thread(name: "opener") {
      usleep(50_000)
      gate.withLock { $0 = true }
      gate.wakeAll()
    }
    try database.compact()
    opener.join()
    try database.write { (connection) throws(DatabaseError) in
      try connection.run("INSERT INTO t VALUES (1)")
    }
    #expect(try keys() == [1])
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(try #require(attributes[.size] as? Int) < 100_000)
    database.close()
    #expect(throws: DatabaseError.self) { try database.compact() }
  }

  @Test func aPieceThatFailsTakesNoOtherOfItsBatchAlong() throws {
    let gate = Locked(false)
    database.enqueue { (_) throws(DatabaseError) in _ = gate.wait { $0 ? true : nil } }
    let outcomes = Locked([Int: Bool]())
    for key in 0..<4 {
      database.enqueue { (connection) throws(DatabaseError) in
        try connection.run("INSERT INTO t VALUES (?)", .integer(key == 2 ? 0 : Int64(key)))
      } done: { error in
        outcomes.withLock { $0[key] = error == nil }
      }
    }
    gate.withLock { $0 = true }
    gate.wakeAll()
    database.close()
    #expect(outcomes.withLock { $0 } == [0: true, 1: true, 2: false, 3: true])
    var connection = try Connection(path)
    #expect(try connection.rows("SELECT k FROM t ORDER BY k") { $0.integer(0) } == [0, 1, 3])
  }

  /// A database of many pages, and how it is made anew: with the one row -1.
  private func remade(_ name: String) throws -> (Database, String) {
    let path = scratch.path(name)
    var connection = try Connection(path)
    try connection.execute(
      """
      CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO t SELECT i, zeroblob(500) FROM n;
      PRAGMA wal_checkpoint(TRUNCATE);
      """)
    let database = try Database(
      path, connection,
      remake: { () throws(DatabaseError) in
        for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
        var connection = try Connection(path)
        try connection.execute(
          "CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB); INSERT INTO t VALUES (-1, NULL)")
        return connection
      })
    return (database, path)
  }

  private func spoil(_ path: String) throws {
    let file = try File(path, O_WRONLY)
    let size = Int(try file.status().st_size) - 4096
    try [UInt8](repeating: 0x5A, count: size).withUnsafeBufferPointer { (bytes) throws(Errno) in
      try file.write(UnsafeRawBufferPointer(bytes), at: 4096)
    }
  }

  private func keys(of database: Database) -> [Int64]? {
    do throws(DatabaseError) {
      return try database.read { (connection) throws(DatabaseError) in
        try connection.rows("SELECT k FROM t WHERE v IS NULL OR length(v) > 0 ORDER BY k") {
          $0.integer(0)
        }
      }
    } catch {
      return nil
    }
  }

  private func eventually(_ condition: () -> Bool) -> Bool {
    for _ in 0..<1000 where !condition() { usleep(10_000) }
    return condition()
  }

  @Test func damageThatAReaderMeetsIsMendedAndReadersGoOn() throws {
    let (database, path) = try remade("read.db")
    try spoil(path)
    #expect(keys(of: database) == nil)
    #expect(eventually { keys(of: database) == [-1] })
    database.close()
  }

  @Test func damageThatAWriterMeetsIsMendedAndTheWriteIsMade() throws {
    let (database, path) = try remade("written.db")
    try spoil(path)
    try database.write { (connection) throws(DatabaseError) in
      try connection.execute("PRAGMA shrink_memory")
      try connection.run("UPDATE t SET v = zeroblob(10)")
      try connection.run("INSERT INTO t VALUES (5000, zeroblob(3))")
    }
    #expect(keys(of: database) == [-1, 5000])
    database.close()
  }

  @Test func aFileThatSomebodyRemovedIsMadeAnew() throws {
    let (database, path) = try remade("removed.db")
    for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
    database.checkFile()
    #expect(eventually { keys(of: database) == [-1] })
    database.close()
    var connection = try Connection(path)
    #expect(try connection.rows("SELECT k FROM t") { $0.integer(0) } == [-1])
  }

  @Test func oneInMemoryIsReadAndWrittenLikeAFile() throws {
    database.close()
    var connection = try Connection()
    try connection.load(path)
    let database = try Database(path, connection)
    #expect(database.isInMemory)
    try database.write { (connection) throws(DatabaseError) in
      try connection.run("INSERT INTO t VALUES (7)")
    }
    let keys = try database.read { (connection) throws(DatabaseError) in
      try connection.rows("SELECT k FROM t") { $0.integer(0) }
    }
    #expect(keys == [7])
    database.close()
    var file = try Connection(path)
    #expect(try file.rows("SELECT k FROM t") { $0.integer(0) }.isEmpty, "the file stays as it was")
  }

  @Test func aReaderCannotWrite() throws {
    #expect(throws: DatabaseError.self) {
      try database.read { (connection) throws(DatabaseError) in
        try connection.run("INSERT INTO t VALUES (1)")
      }
    }
    database.close()
  }

  @Test func closingWritesWhatIsQueuedAndFoldsTheLogIn() throws {
    for key in 0..<500 {
      database.enqueue { (connection) throws(DatabaseError) in
        try connection.run("INSERT INTO t VALUES (?)", .integer(Int64(key)))
      }
    }
    database.close()
    #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
    var connection = try Connection(path)
    #expect(try connection.first("SELECT count(*) FROM t") { $0.integer(0) } == 500)
  }

  @Test func theLogIsFoldedInAlsoWhileAReaderIsAtIt() throws {
    let database = self.database
    try database.write { (connection) throws(DatabaseError) in
      try connection.run("INSERT INTO t VALUES (1)")
    }
    let step = Locked(0)
    let reader = try Platform.Thread(name: "reader") {
      do throws(DatabaseError) {
        try database.read { (connection) throws(DatabaseError) in
          _ = try connection.first("SELECT count(*) FROM t") { $0.integer(0) }
          step.withLock { $0 = 1 }
          step.wakeAll()
          _ = step.wait { $0 == 2 ? true : nil }
        }
      } catch {
        Issue.record(error)
      }
    }
    _ = step.wait { $0 == 1 ? true : nil }
    database.close()
    var copy = try Connection()
    try copy.load(path)
    #expect(try copy.first("SELECT count(*) FROM t") { $0.integer(0) } == 1)
    step.withLock { $0 = 2 }
    step.wakeAll()
    reader.join()
  }

  @Test func afterClosingAWriteIsRefused() {
    database.close()
    let error = #expect(throws: DatabaseError.self) {
      try database.write { (connection) throws(DatabaseError) in
        try connection.run("INSERT INTO t VALUES (1)")
      }
    }
    #expect(error?.message == "the database is closed")
  }

  @Test func manyReadersAndWritersAtOnceSeeWholeTransactions() throws {
    let torn = Locked(0)
    var threads: [Platform.Thread] = []
    for writer in 0..<4 {
      threads.append(
        try Platform.Thread(name: "writer") {
          for index in 0..<50 {
            let key = Int64(writer * 1000 + index * 2)
            self.database.enqueue { (connection) throws(DatabaseError) in
              try connection.run("INSERT INTO t VALUES (?)", .integer(key))
              try connection.run("INSERT INTO t VALUES (?)", .integer(key + 1))
            }
          }
        })
      threads.append(
        try Platform.Thread(name: "reader") {
          for _ in 0..<50 {
            do throws(DatabaseError) {
              let count = try self.database.read { (connection) throws(DatabaseError) in
                try connection.first("SELECT count(*) FROM t") { $0.integer(0) }
              }
              if (count ?? 1) % 2 != 0 { torn.withLock { $0 += 1 } }
            } catch {
              torn.withLock { $0 += 1 }
            }
          }
        })
    }
    for thread in threads { thread.join() }
    #expect(torn.withLock { $0 } == 0)
    _ = try database.write { (connection) throws(DatabaseError) in connection.changes }
    #expect(try keys().count == 400)
    database.close()
  }
}
