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
