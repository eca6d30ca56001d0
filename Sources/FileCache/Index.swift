import BucketStore
import Glibc
import Platform
import SQLite

/// The index as it was found at start, brought up to date and read.
struct OpenedIndex: ~Copyable {
  let connection: Connection
  let copies: [ObjectName: Copy]
  let partials: [ObjectName: Partial]
  /// Whether there may be files without a row, since the last program did not end in order.
  let needsSweep: Bool
}

/// Opens the index, and makes it anew where it cannot be used.
struct IndexOpener {
  static let name = "cache.db"
  /// Left by a program that met damage while it ran.
  static let damageMark: ByteString = "cache.db-damaged"

  let directory: CacheDirectory
  /// Whose copies these are; with another identity everything kept goes.
  let identity: String

  private var path: String { directory.path + "/" + Self.name }

  /// - Throws: `CacheError`: `newerSchema`, or why there can be no index at all.
  func open() throws(CacheError) -> OpenedIndex {
    try makeFile()
    // A program that ends in order folds the log into the file and removes it.
    let isUnclean = access(path + "-wal", F_OK) == 0
    if access("\(directory.path)/\(Self.damageMark)", F_OK) == 0 {
      Log.warning("the cache's index was found damaged and is made anew from the files")
      return try remake(isForgetting: false)
    }
    var newer: NewerSchema?
    var isOther = false
    do throws(DatabaseError) {
      var connection = try Connection(path)
      if isUnclean, try !connection.isSound() {
        throw DatabaseError(code: 11, message: "its pages contradict each other")
      }
      let isNew = try connection.schemaVersion() == 0
      newer = try connection.migrate(Schema.migrations)
      if newer == nil {
        isOther = try fact("identity", in: &connection) ?? identity != identity
        if !isOther { return try read(connection, needsSweep: isUnclean || isNew) }
      }
    } catch {
      guard error.isDamage else { throw .index(path: path, message: error.description) }
      Log.warning("the cache's index is damaged and is made anew from the files: \(error)")
    }
    if let newer {
      throw .newerSchema(directory: directory.path, found: newer.found, known: newer.known)
    }
    return try remake(isForgetting: isOther)
  }

  /// Makes an index from what the files say of themselves, or from none of them.
  private func remake(isForgetting: Bool) throws(CacheError) -> OpenedIndex {
    try removeFiles()
    try makeFile()
    let finder = CopyFinder(directory)
    if isForgetting { finder.removeAll() }
    do throws(DatabaseError) {
      var connection = try Connection(path)
      _ = try connection.migrate(Schema.migrations)
      try connection.transaction { (connection) throws(DatabaseError) in
        for path in finder.files() {
          if let (object, copy) = finder.identify(path) {
            try CopyRows.save(copy, of: object, in: &connection)
          } else {
            finder.remove(path)
          }
        }
      }
      return try read(connection, needsSweep: false)
    } catch {
      throw .index(path: path, message: error.description)
    }
  }

  private func read(_ connection: consuming Connection, needsSweep: Bool) throws(DatabaseError)
    -> OpenedIndex
  {
    var connection = connection
    let boot = Boot.current
    if try fact("boot", in: &connection) != boot {
      try connection.run("UPDATE objects SET changed = 0 WHERE durable = 0")
      try connection.run("DELETE FROM partials WHERE durable = 0")
    }
    try set("boot", to: boot, in: &connection)
    try set("identity", to: identity, in: &connection)
    let copies = try CopyRows.load(&connection)
    let partials = try PartialRows.load(&connection)
    return OpenedIndex(
      connection: connection, copies: copies, partials: partials, needsSweep: needsSweep)
  }

  private func fact(_ name: String, in connection: inout Connection) throws(DatabaseError)
    -> String?
  {
    try connection.first("SELECT value FROM facts WHERE name = ?", .text(name)) { $0.text(0) }
  }

  private func set(_ name: String, to value: String, in connection: inout Connection)
    throws(DatabaseError)
  {
    try connection.run(
      "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", .text(name), .text(value))
  }

  /// Makes the file first, with a mode that SQLite takes over for the files beside it.
  private func makeFile() throws(CacheError) {
    do throws(Errno) {
      let file = try directory.root.open(ByteString(Self.name), O_RDWR | O_CREAT)
      try check { fchmod(file.descriptor, 0o600) }
    } catch {
      throw .system(path: path, doing: "open", error)
    }
  }

  private func removeFiles() throws(CacheError) {
    for suffix in ["", "-wal", "-shm", "-damaged"] {
      do throws(Errno) {
        try directory.root.remove(ByteString(Self.name + suffix))
      } catch {
        if error != .noEntry { throw .system(path: path + suffix, doing: "remove", error) }
      }
    }
  }
}

/// The run of the kernel that this is: what was written in it and not synced is still there.
enum Boot {
  /// The kernel's boot id (random(4)); one that never was, where it cannot be read.
  static let current: String = {
    do throws(Errno) {
      let file = try File("/proc/sys/kernel/random/boot_id", O_RDONLY)
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
        try file.read(UnsafeMutableRawBufferPointer(buffer), at: 0)
      }
      return String(decoding: bytes.prefix(count), as: UTF8.self)
        .filter { $0 != "\n" }
    } catch {
      return "unknown since \(Timestamp.now.nanoseconds)"
    }
  }()
}
