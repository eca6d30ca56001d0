import PendingQueue
import Platform

/// One file that the store does not have yet.
struct QueueReport: Codable, Equatable, Sendable {
  let id: String
  let bucket: String
  let objectPath: String
  /// Where in the mount; null when it lies outside of what is mounted. A folder's mark has the
  /// folder's path.
  @Nullable var path: String?
  /// `put`, or `delete` for what an earlier try may have stored under a name that is gone here.
  let operation: String
  /// `writing`, `waiting`, `uploading` or `failed`.
  let state: String
  /// Why the last try failed, in a sentence; null when none did.
  @Nullable var reason: String?
  /// The same in a word.
  @Nullable var kind: String?
  /// Whether another try may succeed without anybody changing anything.
  let retryable: Bool
  let attempts: Int64
  let size: Int64
  /// Bytes that the try which runs has sent.
  let sent: Int64
  let createdAt: String
  /// No try before this moment; null for as soon as can be.
  @Nullable var nextTry: String?
  /// The path that another writer's file has, beside which this one goes; null for all others.
  @Nullable var conflictOf: String?

  enum CodingKeys: String, CodingKey {
    case id, bucket, path, operation, state, reason, kind, retryable, attempts, size, sent
    case objectPath = "object_path"
    case createdAt = "created_at"
    case nextTry = "next_try"
    case conflictOf = "conflict_of"
  }
}

extension QueueReport {
  /// - Parameters:
  ///   - path: where in the mount, whole.
  ///   - conflictOf: where in the mount the file is that another writer was faster with.
  init(_ entry: PendingEntry, path: String?, conflictOf: String? = nil) {
    let record = entry.record
    self.init(
      id: record.id.description, bucket: record.object.bucket.description,
      objectPath: record.object.key.description, path: path,
      operation: record.operation.rawValue, state: record.state.rawValue,
      reason: record.failure?.reason, kind: record.failure?.kind,
      retryable: record.failure?.isRetryable ?? true, attempts: record.attempts,
      size: record.size, sent: entry.sent, createdAt: record.created.text,
      nextTry: record.nextTry?.text, conflictOf: conflictOf)
  }

  /// The name for people.
  var name: String { path ?? "\(bucket)/\(objectPath)" }

  /// How much of it was sent.
  private var progress: String {
    guard state == "uploading" else { return "-" }
    return size > 0 ? "\(Int(Double(sent) * 100 / Double(size)))%" : "0%"
  }

  private var next: String { nextTry.map { String($0.dropFirst(11).prefix(8)) } ?? "-" }

  /// The line for people.
  var text: String {
    let columns = [
      Self.left(operation == "delete" ? "deleting" : state, 9),
      Self.right(Quantity.text(bytes: size), 10), Self.right(progress, 4),
      Self.right("\(attempts)", 3), Self.left(next, 8), name,
    ]
    let remark = reason ?? conflictOf.map { "another writer changed \($0) too" }
    return columns.joined(separator: "  ") + (remark.map { ": \($0)" } ?? "") + "\n"
  }

  /// What stands above the lines for people.
  static let heading =
    [
      left("STATE", 9), right("SIZE", 10), right("SENT", 4), right("TRY", 3), left("NEXT", 8),
      "PATH",
    ].joined(separator: "  ") + "\n"

  private static func left(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  private static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  /// What a person can do about a file that could not be uploaded.
  var advice: String {
    switch kind {
    case "refused", "notFound":
      "see that you may write there, then bucketfs retry; bucketfs remove gives it up"
    case "tooLarge": "let the bucket take such sizes, then bucketfs retry; or bucketfs remove"
    case "typeRefused": "let the bucket take such types, then bucketfs retry; or bucketfs remove"
    case "keyRefused": "rename it to a name that the store takes"
    case PendingFailure.conflict:
      "copy it to another name, then bucketfs remove shows what the store has"
    case PendingFailure.noRoom:
      "make room and write it again; bucketfs retry sends it as it is, bucketfs remove gives it up"
    case PendingFailure.interrupted:
      "look whether it is whole, then bucketfs retry or bucketfs remove"
    case PendingFailure.damaged: "look whether it is whole, then bucketfs retry or bucketfs remove"
    default: "bucketfs retry tries again, bucketfs remove gives it up"
    }
  }
}

/// What a mount says of its queue.
struct QueueAnswer: Codable, Equatable, Sendable {
  let counts: StatusReport.Queue
  /// Why nothing is sent now: `offline`, `disabled` or `signedOut`; `open` when it is.
  let gate: String
  /// Those on their way first, then oldest first.
  let records: [QueueReport]

  /// Whether a person has switched network access off.
  var isSwitchedOff: Bool { gate == UploadGate.disabled.rawValue }

  /// What stands in the way of all uploads, for people; nil when nothing does.
  var obstacle: String? {
    switch gate {
    case "offline": "the store cannot be reached"
    case "disabled": "network access is switched off"
    case "signedOut": "nobody is signed in"
    default: nil
    }
  }
}

/// How waiting for the queue ended.
struct WaitReport: Codable, Equatable, Sendable {
  /// `stored`, `failed`, `offline` or `timeout`.
  let outcome: String
  let queue: StatusReport.Queue
  /// Why nothing is sent; null when it is.
  @Nullable var reason: String?

  var code: ExitCode {
    switch outcome {
    case "stored": .done
    case "failed": .failed
    default: .offline
    }
  }
}

/// What `retry` and `remove` did.
struct ChangeReport: Codable, Equatable, Sendable {
  let path: String
  /// How many files it was.
  let files: Int

  /// - Parameter done: the word for it.
  func text(_ done: String) -> String { "\(path)\t\(Count.files(files)) \(done)\n" }
}

/// What `clear` removed.
struct ClearReport: Codable, Equatable, Sendable {
  let mountpoint: String
  /// Bytes that copies took before and after; a copy that is open keeps its room until it is closed.
  let before: Int64
  let after: Int64
  /// Pending files that were given up.
  let pending: Int

  var text: String {
    let given = pending > 0 ? ", and \(Count.files(pending)) that the store does not have" : ""
    return "\(mountpoint)\t\(Quantity.text(bytes: before - after)) removed\(given)\n"
  }
}
