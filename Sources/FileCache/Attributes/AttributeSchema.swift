import SQLite

/// The table of what this device keeps of a file or folder that the store cannot hold for it.
///
/// `attributes`: one row for each file or folder of which a person has set something.
/// - `bucket`, `folder`: the folder it is in; both empty for the list of buckets.
/// - `name`: the segment of its key; a folder's ends in `/`.
/// - `tag`, `size`: the version of the object that it is said of, NULL for folders. A row of another
///   version counts for nothing.
/// - `modified`, `mode`: as set, NULL for what was not set.
/// - `extended`: extended attributes, each as a 32-bit little-endian length and as many bytes, names
///   and values in turn.
enum AttributeSchema {
  static let migration = Migration(4, "attributes", script)

  private static let script = """
    CREATE TABLE attributes (
      bucket BLOB NOT NULL,
      folder BLOB NOT NULL,
      name BLOB NOT NULL,
      tag TEXT,
      size INTEGER,
      modified INTEGER,
      mode INTEGER,
      extended BLOB NOT NULL,
      PRIMARY KEY (bucket, folder, name)
    ) WITHOUT ROWID;
    """
}
