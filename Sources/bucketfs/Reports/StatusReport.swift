import BucketStore
import PendingQueue
import Platform

/// The state of one mount.
struct StatusReport: Codable, Equatable, Sendable {
  /// Room that something takes.
  struct Usage: Codable, Equatable, Sendable {
    let bytes: Int64
    /// The bound in bytes; null when there is none.
    @Nullable var limit: Int64?
    /// How many files or listings it is.
    let files: Int64
  }

  /// Files on their way to the store.
  struct Queue: Codable, Equatable, Sendable {
    /// Still being written, by a program that has the file open.
    var writing = 0
    var waiting = 0
    var uploading = 0
    /// Kept until a person does something.
    var failed = 0
    /// How many of those that are to be sent are no files, but folders that were made.
    var folders = 0
    /// Names that are to be deleted at the store, since their file was removed on its way there.
    var deletions = 0
    /// Bytes of all of them.
    var bytes: Int64 = 0
    /// Files of other accounts or stores, neither shown nor sent.
    var others = 0
    /// Files of the queue's folder that could not be understood.
    var aside = 0

    /// What is still to be sent.
    var unsent: Int { writing + waiting + uploading + deletions }

    /// What is still to be sent, for people.
    var unsentText: String {
      Count.unsent(writing + waiting + uploading, folders: folders, deletions: deletions)
    }

    /// For people, on one line.
    var text: String {
      var parts = ["\(waiting) waiting", "\(uploading) uploading", "\(failed) failed"]
      func add(_ count: Int, _ what: String) { if count > 0 { parts.append("\(count) \(what)") } }
      add(folders, "of them new folders")
      add(writing, "being written")
      add(deletions, "to be deleted at the store")
      add(others, "of another account")
      add(aside, "put aside")
      return parts.joined(separator: ", ") + (bytes > 0 ? " (\(Quantity.text(bytes: bytes)))" : "")
    }
  }

  /// `serving`, or `dead` when its process is gone, or `silent` when that does not answer.
  let state: String
  @Nullable var network: String?
  /// Why the store is not reached, or fails though it is; null while it answers.
  @Nullable var networkReason: String?
  /// The store's address.
  @Nullable var store: String?
  @Nullable var session: String?
  @Nullable var cache: Usage?
  @Nullable var listings: Usage?
  @Nullable var queue: Queue?
  /// Files of the last month that another writer was faster with, the newest first.
  @Nullable var conflicts: [ConflictReport]?
  @Nullable var hiddenKeys: Int?
  @Nullable var pid: Int32?
  let mountpoint: String
  let source: String
  @Nullable var since: String?
  @Nullable var cacheDirectory: String?
  /// Why nothing is kept in the cache; null while files that are read are kept.
  @Nullable var cacheProblem: String?
  @Nullable var log: String?
  @Nullable var version: String?

  enum CodingKeys: String, CodingKey {
    case state, network, store, session, cache, listings, queue, conflicts, pid, mountpoint, source,
      since
    case log, version
    case networkReason = "network_reason"
    case hiddenKeys = "hidden_keys"
    case cacheDirectory = "cache_dir"
    case cacheProblem = "cache_problem"
  }
}

extension StatusReport.Queue {
  init(_ counts: PendingCounts) {
    self.init(
      writing: counts.writing, waiting: counts.waiting, uploading: counts.uploading,
      failed: counts.failed, folders: counts.folders, deletions: counts.deletions,
      bytes: counts.bytes,
      others: counts.ofOthers, aside: counts.aside)
  }
}

extension StatusReport {
  /// What can be said of a mount whose process does not.
  init(state: String, mountpoint: String, source: String) {
    self.state = state
    self.mountpoint = mountpoint
    self.source = source
  }

  /// The lines for people.
  var text: String {
    var rows = [("source", source)]
    if state != "serving" { rows.append(("state", state)) }
    func add(_ name: String, _ value: String?) {
      if let value { rows.append((name, value)) }
    }
    add("store", store == source ? nil : store)
    add("network", networkText)
    add("session", session.map(Self.sessionText))
    add("cache", cache.map { Self.text($0, "file", "files") })
    add(
      "not kept", cacheProblem.map { "what is read now: \(cacheDirectory ?? "the cache"): \($0)" })
    add("listings", listings.map { Self.text($0, "folder", "folders") })
    add("queue", queue?.text)
    if let queue, queue.failed > 0 {
      add(
        "failed",
        "bucketfs queue \(mountpoint) shows why \(Count.files(queue.failed)) could not be uploaded")
    }
    for (index, conflict) in (conflicts ?? []).prefix(Self.shownConflicts).enumerated() {
      add(index == 0 ? "conflicts" : "", conflict.text)
    }
    if let count = conflicts?.count, count > Self.shownConflicts {
      add("", "and \(Count.files(count - Self.shownConflicts)) more: bucketfs status --json")
    }
    if let count = hiddenKeys, count > 0 {
      add(
        "hidden", "\(count) objects whose keys cannot be paths: bucketfs unreachable \(mountpoint)")
    }
    add("pid", pid.map { "\($0)" })
    add("since", since)
    add("log", log)
    let width = 10
    return mountpoint + "\n"
      + rows.map { name, value in
        "  " + name + String(repeating: " ", count: width - name.count) + value + "\n"
      }.joined()
  }

  /// How many conflicts are named to people.
  private static let shownConflicts = 5

  /// Being online and having a reason to complain are told apart.
  private var networkText: String? {
    guard let network, let reason = networkReason else { return network }
    let isReached =
      network == NetworkState.online.rawValue || network == NetworkState.restoring.rawValue
    return isReached ? "\(network), but \(reason)" : "\(network): \(reason)"
  }

  private static func sessionText(_ session: String) -> String {
    switch SessionState(rawValue: session) {
    case .keyOnly: "none needed"
    case .signedIn: "signed in"
    case .restoring: "being restored"
    case .signedOut: "signed out"
    case nil: session
    }
  }

  private static func text(_ usage: Usage, _ one: String, _ many: String) -> String {
    let limit = usage.limit.map { "of \(Quantity.text(bytes: $0))" } ?? "without a bound"
    return
      "\(Quantity.text(bytes: usage.bytes)) \(limit), \(usage.files) \(usage.files == 1 ? one : many)"
  }
}
