import SQLite

/// The index: one SQLite file, `cache.db`, that can be thrown away and made again.
///
/// Names (buckets, keys, local paths) are BLOBs: they compare bytewise and need not be UTF-8.
/// Times are nanoseconds since 1970. Flags are 0 or 1.
enum Schema {
  static let migrations = [
    Migration(1, "copies and downloads in parts", copies), ListingSchema.migration,
    Migration(3, "stamps that nobody can set back", stamps), AttributeSchema.migration,
    ListingSchema.partial,
  ]

  /// `facts`: what holds for the whole cache, by name. `identity` is whose copies these are; with
  /// another one, everything in the other tables goes. `boot` is the kernel's boot id at the last
  /// start: rows that are not durable are believed only within the same boot.
  ///
  /// `objects`: one row for each copy, a whole object on this device. The file is renamed into
  /// place first, then the row is committed, so a row always had its file; a file without a row is
  /// taken up by what it says of itself, or removed, at the next start after a crash.
  /// - `bucket`, `path`: the object's name. `transform`: empty for the object itself.
  /// - `local_path`: the file, relative to the cache's folder.
  /// - `size`, `written`, `inode`, `changed`: the file when its bytes were last known to be right.
  ///   One that differs is compared with its checksum before it is served. `changed` is 0 where the
  ///   bytes were not compared yet.
  /// - `sha256`: of the bytes, in hexadecimal; NULL where the tag is their MD5.
  /// - `tag`, `version`, `modified`, `content_type`: as the store told them; NULL if it did not.
  /// - `listed`: the time that listings give for this very version, when it is not `modified`.
  /// - `fetched`, `confirmed`, `used`: last download, last word of the store that it is current,
  ///   last open. The latter two are written in batches and may lag by seconds.
  /// - `pinned`: kept out of eviction. `verified`: the bytes matched the store's checksum.
  /// - `durable`: the file's bytes are known to be on the disk. After a reboot, those of a row
  ///   without it are compared before they are served, since a power cut may have left zeros.
  ///
  /// `partials`: one row for each large object of which some parts are here, in a file in `tmp`.
  /// Written every few seconds, after the bytes. `present`: pairs of 64-bit little-endian numbers,
  /// first byte and end of each part that is there. `length`, `written`, `inode`, `changed`: the file
  /// when the parts were counted; those of a file that differs are not believed. The other columns
  /// are as in `objects`; a row always has a tag, since parts of two versions must never meet.
  private static let copies = """
    CREATE TABLE facts (
      name TEXT PRIMARY KEY,
      value TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE objects (
      bucket BLOB NOT NULL,
      path BLOB NOT NULL,
      transform TEXT NOT NULL DEFAULT '',
      local_path BLOB NOT NULL,
      size INTEGER NOT NULL,
      written INTEGER NOT NULL,
      inode INTEGER NOT NULL,
      tag TEXT,
      version TEXT,
      modified INTEGER,
      content_type TEXT,
      listed INTEGER,
      fetched INTEGER NOT NULL,
      confirmed INTEGER NOT NULL,
      used INTEGER NOT NULL,
      pinned INTEGER NOT NULL DEFAULT 0,
      verified INTEGER NOT NULL,
      durable INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (bucket, path, transform)
    ) WITHOUT ROWID;
    CREATE TABLE partials (
      bucket BLOB NOT NULL,
      path BLOB NOT NULL,
      transform TEXT NOT NULL DEFAULT '',
      local_path BLOB NOT NULL,
      size INTEGER NOT NULL,
      tag TEXT NOT NULL,
      modified INTEGER,
      content_type TEXT,
      fetched INTEGER NOT NULL,
      used INTEGER NOT NULL,
      present BLOB NOT NULL,
      durable INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (bucket, path, transform)
    ) WITHOUT ROWID;
    """

  private static let stamps = """
    ALTER TABLE objects ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE objects ADD COLUMN sha256 TEXT;
    DELETE FROM partials;
    ALTER TABLE partials ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE partials ADD COLUMN written INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE partials ADD COLUMN inode INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE partials ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    """
}
