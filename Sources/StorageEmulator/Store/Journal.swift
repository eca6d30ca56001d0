import Glibc
import Platform

/// The file of a data folder from which a restart rebuilds everything: one JSON record a line.
///
/// Written, not synced: it survives the process, not the machine. It is written under the lock of
/// the contents, since its order must be theirs.
struct Journal: Sendable {
  private let shared: SharedFile

  init(path: String) throws(Errno) {
    shared = SharedFile(try File(path, O_WRONLY | O_CREAT | O_APPEND))
  }

  func append(_ record: JSON) { append(contentsOf: CollectionOfOne(record)) }

  func append(contentsOf records: some Sequence<JSON>) {
    var lines: [UInt8] = []
    for record in records {
      record.write(to: &lines)
      lines.append(10)
    }
    var done = 0
    while done < lines.count {
      let count = lines.withUnsafeBytes { raw in
        write(shared.file.descriptor, raw.baseAddress.map { $0 + done }, raw.count - done)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else {
        Log.error("the journal cannot be written: \(Errno.last)")
        return
      }
      done += count
    }
  }

  static func record(of bucket: Bucket) -> JSON {
    ["set_bucket": bucket.json(showsType: false)]
  }

  static func record(of session: Session) -> JSON {
    [
      "session": .string(session.id), "user": .string(session.user),
      "active": .string(session.active), "parent": .text(session.parent),
      "used": .object(
        session.used.map { JSON.Member($0.key, .string(TimeText.iso($0.value))) }),
    ]
  }

  static func record(of row: ObjectRow, in bucket: String) -> JSON {
    guard case .file(let file) = row.blob, let name = file.name else {
      preconditionFailure("a data folder keeps every blob in a file")
    }
    return [
      "set": .string(row.key.text), "bucket": .string(bucket),
      "blob": .string(name),
      "id": .string(row.id), "version": .string(row.version), "owner": .text(row.owner),
      "created_at": .string(TimeText.iso(row.createdAt)),
      "updated_at": .string(TimeText.iso(row.updatedAt)),
      "modified_at": .string(TimeText.iso(row.modifiedAt)), "size": .integer(Int64(row.size)),
      "type": .string(row.type), "cache_control": .string(row.cacheControl),
      "tag": .string(row.tag), "robots": .text(row.robots),
      "user_metadata": row.userMetadata ?? .null,
    ]
  }
}
