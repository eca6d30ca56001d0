import BucketStore
import Platform
import SQLite

/// The copies' rows in the index.
enum CopyRows {
  static func save(_ copy: Copy, of object: ObjectName, in connection: inout Connection)
    throws(DatabaseError)
  {
    try connection.run(
      """
      INSERT OR REPLACE INTO objects (bucket, path, local_path, size, written, inode, changed,
        sha256, tag, version, modified, content_type, listed, fetched, confirmed, used, pinned,
        verified, durable)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .name(object.bucket), .name(object.key), .name(copy.path), .integer(copy.stamp.size),
      .time(copy.stamp.written), .integer(copy.stamp.inode), .time(copy.stamp.changed),
      .text(orNull: copy.sha256), .text(orNull: copy.facts.tag),
      .text(orNull: copy.facts.version), .time(orNull: copy.facts.modified),
      .text(orNull: copy.facts.contentType), .time(orNull: copy.confirmedListed),
      .time(copy.fetched),
      .time(copy.confirmed), .time(copy.used), .flag(copy.isPinned), .flag(copy.isVerified),
      .flag(copy.isDurable))
  }

  /// Writes what changes while a copy stays the same: when it was used and confirmed.
  static func touch(_ copy: Copy, of object: ObjectName, in connection: inout Connection)
    throws(DatabaseError)
  {
    try connection.run(
      """
      UPDATE objects SET used = ?, confirmed = ?, listed = ?, durable = ?
      WHERE bucket = ? AND path = ? AND transform = '' AND inode = ? AND written = ?
      """,
      .time(copy.used), .time(copy.confirmed), .time(orNull: copy.confirmedListed),
      .flag(copy.isDurable),
      .name(object.bucket), .name(object.key), .integer(copy.stamp.inode),
      .time(copy.stamp.written))
  }

  static func remove(_ object: ObjectName, in connection: inout Connection)
    throws(DatabaseError)
  {
    try connection.run(
      "DELETE FROM objects WHERE bucket = ? AND path = ? AND transform = ''",
      .name(object.bucket), .name(object.key))
  }

  static func load(_ connection: inout Connection) throws(DatabaseError) -> [ObjectName: Copy] {
    var copies: [ObjectName: Copy] = [:]
    var content: UInt64 = 0
    try connection.forEach(
      """
      SELECT bucket, path, local_path, size, written, inode, tag, version, modified, content_type,
        listed, fetched, confirmed, used, pinned, verified, durable, changed, sha256
      FROM objects WHERE transform = ''
      """
    ) { row in
      content += 1
      copies[ObjectName(bucket: row.name(0), key: row.name(1))] = Copy(
        path: row.name(2),
        stamp: FileStamp(
          size: row.integer(3), inode: row.integer(5), written: row.time(4),
          changed: row.time(17)),
        facts: ObjectFacts(
          size: row.integer(3), tag: row.textOrNull(6), version: row.textOrNull(7),
          modified: row.timeOrNull(8), contentType: row.textOrNull(9)),
        sha256: row.textOrNull(18), listed: row.timeOrNull(10), fetched: row.time(11),
        confirmed: row.time(12),
        used: row.time(13), isPinned: row.flag(14), isVerified: row.flag(15),
        isDurable: row.flag(16), content: content)
      return true
    }
    return copies
  }
}

/// The rows of objects that are here in parts.
enum PartialRows {
  static func save(_ partial: Partial, of object: ObjectName, in connection: inout Connection)
    throws(DatabaseError)
  {
    try connection.run(
      """
      INSERT OR REPLACE INTO partials (bucket, path, local_path, size, tag, modified,
        content_type, fetched, used, present, durable, length, written, inode, changed)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .name(object.bucket), .name(object.key), .name(partial.path), .integer(partial.facts.size),
      .text(partial.facts.tag ?? ""), .time(orNull: partial.facts.modified),
      .text(orNull: partial.facts.contentType), .time(partial.fetched), .time(partial.used),
      .blob(partial.present.encoded), .flag(partial.isDurable), .integer(partial.stamp.size),
      .time(partial.stamp.written), .integer(partial.stamp.inode), .time(partial.stamp.changed))
  }

  static func remove(_ object: ObjectName, in connection: inout Connection)
    throws(DatabaseError)
  {
    try connection.run(
      "DELETE FROM partials WHERE bucket = ? AND path = ? AND transform = ''",
      .name(object.bucket), .name(object.key))
  }

  static func load(_ connection: inout Connection) throws(DatabaseError) -> [ObjectName: Partial] {
    var partials: [ObjectName: Partial] = [:]
    try connection.forEach(
      """
      SELECT bucket, path, local_path, size, tag, modified, content_type, fetched, used, present,
        durable, length, written, inode, changed
      FROM partials WHERE transform = ''
      """
    ) { row in
      let size = row.integer(3)
      guard let present = PartMap(encoded: row.blob(9), size: size) else { return true }
      partials[ObjectName(bucket: row.name(0), key: row.name(1))] = Partial(
        path: row.name(2),
        stamp: FileStamp(
          size: row.integer(11), inode: row.integer(13), written: row.time(12),
          changed: row.time(14)),
        facts: ObjectFacts(
          size: size, tag: row.text(4), modified: row.timeOrNull(5),
          contentType: row.textOrNull(6)),
        present: present, fetched: row.time(7), used: row.time(8), isDurable: row.flag(10))
      return true
    }
    return partials
  }
}
