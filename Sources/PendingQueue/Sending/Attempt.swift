package import BucketStore
import Platform

/// One try to bring one record to the store. It talks to the store, and keeps nothing.
struct Attempt {
  enum Failure: Error {
    case store(StoreError)
    /// The store has another content than the change was based on: these are its facts.
    case conflict(String, ObjectInfo)
  }

  let store: any WritableStore
  let record: PendingRecord
  let sums: Fingerprint
  /// Whether nothing was ever tried under this name from here.
  let isFirst: Bool
  let source: ContentSource
  let flight: Flight
  /// Notes what the store has of an earlier try.
  let rebase: (PendingBase) -> Void
  /// Keeps the token of an upload that was opened, before its first byte is sent.
  let keep: (UploadToken?) throws(StoreError) -> Void
  let progress: @Sendable (Int64) -> Void

  /// Sends the bytes, unless the store has them already.
  ///
  /// - Returns: the store's facts of the object, compared with the bytes.
  func run() throws(Failure) -> ObjectInfo {
    let (stored, condition) = try look(asking: !isFirst)
    if let stored { return stored }
    do throws(StoreError) {
      try send(condition)
    } catch {
      guard error.kind == .exists || error.kind == .conflict else { throw .store(error) }
      // An earlier try of ours may be the one that was first.
      let (stored, condition) = try look(asking: true)
      if let stored { return stored }
      // What was in the way has gone again.
      if condition == .absent { throw .store(StoreError(.server, error.message)) }
      do throws(StoreError) {
        try send(condition)
      } catch {
        guard error.kind == .exists || error.kind == .conflict else { throw .store(error) }
        guard let found = try info() else { throw .store(StoreError(.server, error.message)) }
        if sums.match(found, isWhole: isWhole) == .same { return found }
        // Nobody else has written: the store was busy with this very object.
        if isNoOthers(found) { throw .store(StoreError(.server, error.message)) }
        throw .conflict(error.message, found)
      }
    }
    CrashPoint.reach(.uploadSent)
    guard let found = try info() else {
      throw .store(StoreError(.damaged, "the store does not show what it said it had stored"))
    }
    // A store that tells neither digest is believed by the size; that the object is ours is known.
    guard sums.match(found, isWhole: isWhole) != .different else {
      throw .store(StoreError(.damaged, "the store has other bytes than were sent"))
    }
    return found
  }

  /// Whether the bytes go in one piece.
  private var isWhole: Bool { store.writing.isWhole(record.size) }

  /// Looks what the store has, where that matters, and decides on which condition to send.
  ///
  /// - Parameter asking: false where nothing was ever tried, and the store itself sees to it that
  ///   nothing of another writer is replaced.
  private func look(asking: Bool) throws(Failure) -> (
    stored: ObjectInfo?, PutRequest.Condition
  ) {
    if record.base == .absent, !asking, store.writing.atomicCreate { return (nil, .absent) }
    guard let found = try info() else { return (nil, .absent) }
    if sums.match(found, isWhole: isWhole) == .same { return (found, .none) }
    let isOurs = record.tried.contains { $0.isClaimed(by: found, in: store.writing) }
    let isBase = record.base.matches(found)
    if isOurs, !isBase { rebase(.object(version: found.version, tag: found.tag)) }
    guard isOurs || isBase else {
      switch record.base {
      case .absent: throw .conflict("another writer stored a file of this name first", found)
      case .object: throw .conflict("another writer changed the file since it was read", found)
      }
    }
    return (nil, found.version.map { .version($0) } ?? .none)
  }

  /// Whether an object is what the change was based on, or what an earlier try may have stored.
  private func isNoOthers(_ found: ObjectInfo) -> Bool {
    record.base.matches(found)
      || record.tried.contains { $0.isClaimed(by: found, in: store.writing) }
  }

  /// The store's facts; nil when there is no such object.
  private func info() throws(Failure) -> ObjectInfo? {
    do throws(StoreError) {
      return try store.info(record.object, flight.call)
    } catch {
      if error.kind == .notFound, store.session.isCredible { return nil }
      throw .store(error)
    }
  }

  private func send(_ condition: PutRequest.Condition) throws(StoreError) {
    // No byte of it will be asked for.
    if sums.size == 0, !flight.beginLast() {
      throw StoreError(.cancelled, "the file was changed, renamed or removed")
    }
    let request = PutRequest(
      object: record.object, size: record.size, contentType: record.contentType,
      userMetadata: [
        Fingerprint.metadataKey: sums.sha256,
        Self.modifiedKey: Self.seconds(record.modified),
      ], condition: condition)
    if isWhole {
      return try store.put(request, from: source, progress: progress, flight.call)
    }
    if let token = record.upload {
      do throws(StoreError) {
        return try store.continueUpload(
          token, request, from: source, progress: progress, flight.call)
      } catch {
        // Forgotten by the store: begin another.
        guard error.kind == .notFound else { throw error }
        try keep(nil)
      }
    }
    let token = try store.beginUpload(request, flight.call)
    try keep(token)
    CrashPoint.reach(.tokenSaved)
    try store.continueUpload(token, request, from: source, progress: progress, flight.call)
  }

  /// The name under which the user's metadata carry the modification time.
  static let modifiedKey = "mtime"

  /// Seconds since 1970 with nine decimals.
  static func seconds(_ time: Timestamp) -> String {
    let parts = time.timespec
    let digits = String(parts.tv_nsec)
    return "\(parts.tv_sec).\(String(repeating: "0", count: 9 - digits.count))\(digits)"
  }
}

extension PendingBase {
  /// Whether an object is still the one that the change was based on.
  package func matches(_ info: ObjectInfo) -> Bool {
    guard case .object(let version, let tag) = self else { return false }
    if let version, let found = info.version { return version == found }
    if let tag, let found = info.tag { return EntityTag.areSame(tag, found) }
    return false
  }
}
