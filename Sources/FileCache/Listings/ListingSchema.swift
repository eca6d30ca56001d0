import SQLite

/// The tables of kept listings.
///
/// `listings`: one row for each folder whose content is known.
/// - `id`: what its entries refer to it by; given anew each time a listing is written.
/// - `bucket`, `prefix`: the folder; both empty for the list of buckets.
/// - `fetched`, `cost`: when the store was asked, and for how many nanoseconds it answered.
/// - `bytes`: about how much room the row and its entries take.
/// - `hidden`: how many of its entries are of kind 3.
/// - `partial`: 1 when the entries are those of copies alone, made when the index was lost; shown
///   while the store cannot be asked, and never believed to be all.
/// - `complete`: 0 while a long listing is being written. Such a row is not read; the next start
///   removes it, and its entries, after a crash.
///
/// `entries`: one row for each name in a listing.
/// - `name`: the segment of the key, as the store spells it; for `kind` 3 the whole key.
/// - `kind`: 0 file, 1 folder, 2 bucket that the store does not list, 3 key that cannot be shown.
/// - `size`, `tag`, `modified`, `type`: as the store told them, NULL if it did not. For a folder,
///   `modified` is when a change in it was last noticed, first of all when it was first seen.
enum ListingSchema {
  static let migration = Migration(2, "listings", script)
  static let partial = Migration(
    5, "listings made of copies",
    "ALTER TABLE listings ADD COLUMN partial INTEGER NOT NULL DEFAULT 0")

  private static let script = """
    CREATE TABLE listings (
      id INTEGER PRIMARY KEY,
      bucket BLOB NOT NULL,
      prefix BLOB NOT NULL,
      fetched INTEGER NOT NULL,
      cost INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      hidden INTEGER NOT NULL,
      complete INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX listings_by_folder ON listings (bucket, prefix) WHERE complete = 1;
    CREATE INDEX listings_by_age ON listings (fetched);
    CREATE TABLE entries (
      listing INTEGER NOT NULL,
      name BLOB NOT NULL,
      kind INTEGER NOT NULL,
      size INTEGER,
      tag TEXT,
      modified INTEGER,
      type TEXT,
      PRIMARY KEY (listing, name, kind)
    ) WITHOUT ROWID;
    """
}
