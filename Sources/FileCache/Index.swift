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
  /// Left by a program that could not write the index.
  static let behindMark: ByteString = "cache.db-behind"

  let directory: CacheDirectory
  /// Whose copies these are; with another identity everything kept goes.
  let identity: String

  private var path: String { directory.path + "/" + Self.name }

  /// - Throws: `CacheError`: `newerSchema`, or why there can be no index at all.
  func open() throws(CacheError) -> OpenedIndex {
    var reason = directory.refusal.map(\.description)
    if reason == nil {
      do throws(CacheError) {
        return try openFile()
      } catch {
        guard case .noPlace(_, let message) = error else { throw error }
        reason = message
      }
    }
    Log.warning(
      "nothing is kept in the cache \(directory.path), which cannot be written: \(reason ?? "")")
    return try openInMemory()
  }

  private func openFile() throws(CacheError) -> OpenedIndex {
    try makeFile()
    // A program that ends in order folds the log into the file and removes it.
    let isUnclean = access(path + "-wal", F_OK) == 0 || isBehind
    var newer: NewerSchema?
    var isOther = false
    do throws(DatabaseError) {
      var connection = try Connection(path)
      if isUnclean, try !connection.isSound() {
        throw DatabaseError(code: 11, message: "its pages contradict each other")
      }
      // One that was just made knows nothing of the copies there may be.
      let isNew = try connection.schemaVersion() == 0
      newer = try isNew ? nil : connection.migrate(Schema.migrations)
      if newer == nil, !isNew {
        isOther = try fact("identity", in: &connection) ?? identity != identity
        if !isOther {
          let opened = try read(connection, needsSweep: isUnclean)
          removeMark()
          return opened
        }
      }
    } catch {
      if error.isRefusal { throw .noPlace(path: path, message: error.message) }
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
    let finder = CopyFinder(directory)
    if isForgetting { finder.removeAll() }
    let copies = found(finder, isTidying: true)
    do throws(DatabaseError) {
      let opened = try read(try makeFile(copies, [:]), needsSweep: false)
      removeMark()
      return opened
    } catch {
      if error.isRefusal { throw .noPlace(path: path, message: error.message) }
      throw .index(path: path, message: error.description)
    }
  }

  /// The copies that files say they are.
  private func found(_ finder: CopyFinder, isTidying: Bool) -> [ObjectName: Copy] {
    var copies: [ObjectName: Copy] = [:]
    for path in finder.files() {
      if let (object, copy) = finder.identify(path) {
        copies[object] = copy
      } else if isTidying {
        finder.remove(path)
      }
    }
    return copies
  }

  /// An index that is gone when the program ends: of what the file holds, else of what the files of
  /// copies say of themselves.
  private func openInMemory() throws(CacheError) -> OpenedIndex {
    var newer: NewerSchema?
    do throws(DatabaseError) {
      if let connection = try loaded(&newer) {
        return try read(connection, needsSweep: false)
      }
      if newer == nil {
        let copies = found(CopyFinder(directory), isTidying: false)
        return try read(try fill(try Connection(), copies, [:]), needsSweep: false)
      }
    } catch {
      throw .index(path: path, message: error.description)
    }
    throw .newerSchema(
      directory: directory.path, found: newer?.found ?? 0, known: newer?.known ?? 0)
  }

  /// What the file holds, in memory; nil where that cannot be used, or is another's.
  private func loaded(_ newer: inout NewerSchema?) throws(DatabaseError) -> Connection? {
    var connection = try Connection()
    do throws(DatabaseError) {
      try connection.load(path)
      guard try connection.isSound(), try connection.schemaVersion() > 0 else { return nil }
      newer = try connection.migrate(Schema.migrations)
      guard newer == nil, try fact("identity", in: &connection) == identity else { return nil }
    } catch {
      Log.debug("\(path) cannot be read: \(error)")
      return nil
    }
    return connection
  }

  /// Makes the index anew with what is known of copies; in memory where the file cannot be made.
  func make(_ copies: [ObjectName: Copy], _ partials: [ObjectName: Partial])
    throws(DatabaseError) -> Connection
  {
    directory.restore()
    if directory.isInPlace, directory.refusal == nil {
      do throws(DatabaseError) {
        return try makeFile(copies, partials)
      } catch {
        Log.warning("\(path) cannot be made anew, nothing is written down: \(error)")
      }
    }
    return try fill(try Connection(), copies, partials)
  }

  private func makeFile(_ copies: [ObjectName: Copy], _ partials: [ObjectName: Partial])
    throws(DatabaseError) -> Connection
  {
    let rescued = RescuedAttributes(path, identity: identity)
    do throws(CacheError) {
      try removeFiles()
      try makeFile()
    } catch {
      throw DatabaseError(code: 14, message: error.description)
    }
    var connection = try fill(try Connection(path), copies, partials)
    try connection.transaction { (connection) throws(DatabaseError) in
      try rescued.save(in: &connection)
    }
    return connection
  }

  /// Writes an index that is in memory into the file, in place of what the file held.
  ///
  /// The file is replaced once the new one is whole and was used where it lies.
  func keep(_ memory: inout Connection) throws(DatabaseError) {
    if access(path, F_OK) == 0 {
      // The file's log was not read when this one was loaded from it.
      let rescued = RescuedAttributes(path, identity: identity)
      try memory.transaction { (connection) throws(DatabaseError) in
        try rescued.save(in: &connection)
      }
    }
    do throws(CacheError) {
      try removeFiles(Self.newName)
      try makeFile(Self.newName)
      let new = directory.path + "/" + Self.newName
      do throws(DatabaseError) {
        try memory.save(to: new)
        try tryOut(new)
      } catch {
        try removeFiles(Self.newName)
        throw error.isRefusal
          ? .noPlace(path: new, message: error.message)
          : .index(path: new, message: error.description)
      }
      try replaceFile()
    } catch {
      throw DatabaseError(code: 14, message: error.description)
    }
  }

  private static let newName = name + "-new"

  /// Opens a file as it is going to be used, and folds its log into it.
  private func tryOut(_ new: String) throws(DatabaseError) {
    do {
      var connection = try Connection(new)
      _ = try fact("identity", in: &connection)
    }
    guard access(new + "-wal", F_OK) != 0 else {
      throw DatabaseError(code: 14, message: "its log stays beside it")
    }
  }

  private func replaceFile() throws(CacheError) {
    do throws(Errno) {
      try directory.root.open(ByteString(Self.newName), O_RDWR).sync()
      // A log of the old file must not be taken for one of the new.
      for suffix in ["-wal", "-shm"] {
        do throws(Errno) {
          try directory.root.remove(ByteString(Self.name + suffix))
        } catch .noEntry {
          // It was closed in order.
        }
      }
      try directory.root.take(
        ByteString(Self.newName), from: directory.root, as: ByteString(Self.name))
    } catch {
      throw .system(path: path, doing: "replace", error)
    }
  }

  private func fill(
    _ connection: consuming Connection, _ copies: [ObjectName: Copy],
    _ partials: [ObjectName: Partial]
  ) throws(DatabaseError) -> Connection {
    var connection = connection
    _ = try connection.migrate(Schema.migrations)
    try connection.transaction { (connection) throws(DatabaseError) in
      try set("boot", to: Boot.current, in: &connection)
      try set("identity", to: identity, in: &connection)
      for (object, copy) in copies { try CopyRows.save(copy, of: object, in: &connection) }
      for (object, partial) in partials {
        try PartialRows.save(partial, of: object, in: &connection)
      }
      try ListingsOfCopies.save(copies, in: &connection)
    }
    return connection
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
  private func makeFile(_ name: String = Self.name) throws(CacheError) {
    do throws(Errno) {
      let file = try directory.root.open(ByteString(name), O_RDWR | O_CREAT)
      try check { fchmod(file.descriptor, 0o600) }
    } catch {
      if error.isNoPlace { throw .noPlace(path: path, message: error.description) }
      throw .system(path: path, doing: "open", error)
    }
  }

  private func removeFiles(_ name: String = Self.name) throws(CacheError) {
    for suffix in ["", "-wal", "-shm"] {
      do throws(Errno) {
        try directory.root.remove(ByteString(name + suffix))
      } catch {
        if error != .noEntry { throw .system(path: path + suffix, doing: "remove", error) }
      }
    }
  }

  private var isBehind: Bool { access("\(directory.path)/\(Self.behindMark)", F_OK) == 0 }

  private func removeMark() {
    guard isBehind else { return }
    do throws(Errno) {
      try directory.root.remove(Self.behindMark)
    } catch {
      // The files are looked through once more at the next start.
      Log.warning("cannot remove \(directory.path)/\(Self.behindMark): \(error)")
    }
  }

  /// Notes that there may be files which the index does not know.
  func markBehind() {
    do throws(Errno) {
      _ = try directory.root.open(Self.behindMark, O_WRONLY | O_CREAT)
    } catch {
      Log.debug("cannot note that the index is behind: \(error)")
    }
  }
}
