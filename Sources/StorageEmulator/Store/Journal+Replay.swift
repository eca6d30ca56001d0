import Glibc
import Platform

extension Journal {
  /// Rebuilds the contents that an earlier run left in a data folder, and starts a new journal
  /// that holds just them.
  static func replay(path: String, blobs: BlobStore) throws(Errno) -> Contents {
    var contents = Contents()
    var known: [String: Blob] = [:]
    for line in try lines(of: path) {
      do throws(JSON.Malformed) {
        apply(try JSON(reading: Array(line)), to: &contents) { name in
          if let blob = known[name] { return blob }
          let blob = blobs.known(name)
          known[name] = blob
          return blob
        }
      } catch {
        // Only the last line can be torn: the process was killed while it wrote it.
        Log.warning("a torn line of the journal is passed over")
      }
    }
    try compact(contents, path: path)
    contents.journal = try Journal(path: path)
    var used: Set<String> = []
    for bucket in contents.buckets.values {
      for row in bucket.rows.values {
        if case .file(let file) = row.blob, let name = file.name { used.insert(name) }
      }
    }
    // What nothing refers to any more goes here, all at once.
    blobs.removeAll(except: used)
    return contents
  }

  private static func lines(of path: String) throws(Errno) -> [ArraySlice<UInt8>] {
    do throws(Errno) {
      return try File.contents(of: path, limit: 1 << 30).split(separator: 10)
    } catch {
      if error == .noEntry { return [] }
      throw error
    }
  }

  private static func compact(_ contents: Contents, path: String) throws(Errno) {
    var lines: [UInt8] = []
    func add(_ record: JSON) {
      record.write(to: &lines)
      lines.append(10)
    }
    for bucket in contents.buckets.values {
      add(record(of: bucket))
      for row in bucket.rows.values { add(record(of: row, in: bucket.name)) }
    }
    for session in contents.sessions.values { add(record(of: session)) }
    try File.replace(path, with: lines)
  }

  private static func apply(
    _ record: JSON, to contents: inout Contents, blob: (String) -> Blob
  ) {
    let bucket = record["bucket"]?.text ?? ""
    if let key = record["set"]?.text {
      guard let row = row(record, key: key, blob: blob) else { return }
      contents.buckets[bucket]?.set(row)
    } else if let key = record["removed"]?.text {
      contents.buckets[bucket]?.remove(ByteString(key))
    } else if let settings = record["set_bucket"], let name = settings["name"]?.text {
      let made = self.bucket(settings, name: name)
      if contents.buckets[name] == nil {
        contents.buckets[name] = made
      } else {
        contents.buckets[name]?.settings = made.settings
        contents.buckets[name]?.updatedAt = made.updatedAt
      }
    } else if let name = record["removed_bucket"]?.text {
      contents.buckets[name] = nil
    } else if let id = record["session"]?.text {
      contents.sessions[id] = session(record, id: id)
    } else if let id = record["removed_session"]?.text {
      contents.sessions[id] = nil
    }
  }

  private static func time(_ json: JSON?) -> Timestamp {
    json?.text.flatMap(TimeText.readISO) ?? .epoch
  }

  private static func row(_ record: JSON, key: String, blob: (String) -> Blob) -> ObjectRow? {
    guard let name = record["blob"]?.text, !name.contains("/"), let size = record["size"]?.whole
    else { return nil }
    let metadata = record["user_metadata"]
    return ObjectRow(
      id: record["id"]?.text ?? "", version: record["version"]?.text ?? "", key: ByteString(key),
      owner: record["owner"]?.text, createdAt: time(record["created_at"]),
      updatedAt: time(record["updated_at"]), modifiedAt: time(record["modified_at"]),
      size: Int(size), type: record["type"]?.text ?? "",
      cacheControl: record["cache_control"]?.text ?? "", tag: record["tag"]?.text ?? "",
      robots: record["robots"]?.text, userMetadata: metadata == .null ? nil : metadata,
      blob: blob(name))
  }

  private static func bucket(_ json: JSON, name: String) -> Bucket {
    var settings = Bucket.Settings()
    settings.isPublic = json["public"]?.flag ?? false
    settings.sizeLimit = json["file_size_limit"]?.whole.map { Int($0) }
    settings.allowedTypes = json["allowed_mime_types"]?.items?.compactMap(\.text)
    let owner = json["owner"]?.text
    var bucket = Bucket(
      name: name, settings: settings, owner: owner == "" ? nil : owner,
      now: time(json["created_at"]))
    bucket.updatedAt = time(json["updated_at"])
    return bucket
  }

  private static func session(_ json: JSON, id: String) -> Session {
    var session = Session(
      id: id, user: json["user"]?.text ?? "", active: json["active"]?.text ?? "",
      parent: json["parent"]?.text)
    guard case .object(let used)? = json["used"] else { return session }
    for member in used { session.used[member.name] = time(member.value) }
    return session
  }
}
