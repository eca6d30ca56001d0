package import Platform
package import SQLite

/// What this device keeps of files and folders that no store keeps, by folder: in the index, and in
/// memory for the folders that were looked at.
///
/// Every call is safe from any thread. With nothing kept at all a question is one look at a flag.
package final class AttributeTable: Sendable {
  private struct State {
    var isEmpty = false
    var folders: [FolderName: [ByteString: KeptAttributes]] = [:]
    var count = 0
    /// Counts the changes, so that a folder which was read meanwhile is read again.
    var generation: UInt64 = 0
  }

  private let database: Database
  private let state = Locked(State())
  /// Past so many rows in memory all are read anew as they are needed.
  private static let limit = 200_000

  package init(_ database: Database) {
    self.database = database
    let isEmpty = read { (connection) throws(DatabaseError) in
      try connection.first("SELECT 1 FROM attributes LIMIT 1") { _ in true } == nil
    }
    state.withLock { $0.isEmpty = isEmpty ?? false }
  }

  /// Whether nothing is kept at all.
  package var isEmpty: Bool { state.withLock { $0.isEmpty } }

  /// What is kept of a name; memory, and one quick read of the index for a folder that was not
  /// looked at before.
  ///
  /// - Parameter name: the segment of the key; a folder's ends in `/`.
  package func attributes(of name: ByteString, in folder: FolderName) -> KeptAttributes? {
    let (isEmpty, known) = state.withLock { ($0.isEmpty, $0.folders[folder]?[name]) }
    if isEmpty || known != nil { return known }
    if state.withLock({ $0.folders[folder] != nil }) { return nil }
    return load(folder)[name]
  }

  /// Keeps something of a name in place of what was kept; nil, or nothing set, removes it. Waits
  /// for the index's writing thread.
  package func set(_ kept: KeptAttributes?, of name: ByteString, in folder: FolderName) {
    let kept = kept.flatMap { $0.isEmpty ? nil : $0 }
    if kept == nil, attributes(of: name, in: folder) == nil { return }
    state.withLock { state in
      state.generation &+= 1
      if kept != nil { state.isEmpty = false }
      if state.folders[folder] != nil { state.folders[folder]?[name] = kept }
    }
    do throws(DatabaseError) {
      try database.write { (connection) throws(DatabaseError) in
        guard let kept else {
          return try connection.run(
            "DELETE FROM attributes WHERE bucket = ? AND folder = ? AND name = ?",
            .name(folder.bucket), .name(folder.prefix), .name(name))
        }
        try connection.run(
          "INSERT OR REPLACE INTO attributes "
            + "(bucket, folder, name, tag, size, modified, mode, extended) "
            + "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
          .name(folder.bucket), .name(folder.prefix), .name(name), .text(orNull: kept.tag),
          .integer(orNull: kept.size), .time(orNull: kept.modified),
          .integer(orNull: kept.mode.map(Int64.init)), .name(ByteString(kept.encoded)))
      }
    } catch {
      // Shown as it was set until the mount ends.
      Log.warning("attributes of \(folder)\(name) are not kept: \(error)")
    }
    state.withLock { state in
      state.generation &+= 1
      // The folder may have been read while this was being written.
      if state.folders[folder] != nil { state.folders[folder]?[name] = kept }
    }
  }

  /// Lets what is kept of all below a folder follow it to its new name. Waits for the index's
  /// writing thread.
  package func rename(_ folder: FolderName, to target: FolderName) {
    if isEmpty { return }
    state.withLock { $0.generation &+= 1 }
    do throws(DatabaseError) {
      try database.write { (connection) throws(DatabaseError) in
        let below = Set(
          try connection.rows(
            "SELECT folder FROM attributes WHERE bucket = ? AND folder >= ?",
            .name(folder.bucket), .name(folder.prefix)
          ) { $0.name(0) }
        ).filter { $0.hasPrefix(folder.prefix) }
        for prefix in below {
          try connection.run(
            "UPDATE OR REPLACE attributes SET bucket = ?, folder = ? "
              + "WHERE bucket = ? AND folder = ?",
            .name(target.bucket), .name(target.prefix + prefix.dropFirst(folder.prefix.count)),
            .name(folder.bucket), .name(prefix))
        }
      }
    } catch {
      Log.warning("attributes of what is in \(folder) are not kept: \(error)")
    }
    state.withLock { state in
      state.generation &+= 1
      state.folders = [:]
      state.count = 0
    }
  }

  private func load(_ folder: FolderName) -> [ByteString: KeptAttributes] {
    while true {
      let generation = state.withLock { $0.generation }
      let rows = read { (connection) throws(DatabaseError) in
        try connection.rows(
          "SELECT name, tag, size, modified, mode, extended FROM attributes "
            + "WHERE bucket = ? AND folder = ?",
          .name(folder.bucket), .name(folder.prefix)
        ) { row in
          (
            row.name(0),
            KeptAttributes(
              tag: row.textOrNull(1), size: row.integerOrNull(2), modified: row.timeOrNull(3),
              mode: row.integerOrNull(4).map { UInt32(truncatingIfNeeded: $0) },
              extended: KeptAttributes.decode(row.blob(5)))
          )
        }
      }
      guard let rows else { return [:] }
      let loaded = Dictionary(rows) { _, last in last }
      let isCurrent = state.withLock { state -> Bool in
        guard state.generation == generation else { return false }
        if state.count > Self.limit {
          state.folders = [:]
          state.count = 0
        }
        state.folders[folder] = loaded
        state.count += loaded.count + 1
        return true
      }
      if isCurrent { return loaded }
    }
  }

  private func read<Result: Sendable>(
    _ body: (inout Connection) throws(DatabaseError) -> Result
  ) -> Result? {
    do throws(DatabaseError) {
      return try database.read(body)
    } catch {
      Log.warning("cannot read the attributes that are kept: \(error)")
      return nil
    }
  }
}
