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
  /// Keeps the token of an upload that was opened, before its first byte is sent.
  let keep: (UploadToken?) throws(StoreError) -> Void
  let progress: @Sendable (Int64) -> Void

  /// Sends the bytes, unless the store has them already.
  ///
  /// - Returns: the store's facts of the object, compared with the bytes.
  func run() throws(Failure) -> ObjectInfo {
    let (stored, condition) = try look()
    if let stored { return stored }
    do throws(StoreError) {
      try send(condition)
    } catch {
      guard error.kind == .exists || error.kind == .conflict else { throw .store(error) }
      // An earlier try of ours may be the one that was first.
      guard let found = try info() else {
        // What was in the way has gone again.
        throw .store(StoreError(.server, error.message))
      }
      if sums.match(found, isWhole: isWhole) == .same { return found }
      throw .conflict(error.message, found)
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
  private var isWhole: Bool {
    guard let bound = store.writing.resumable else { return true }
    return record.size < bound
  }

  /// Looks what the store has, where that matters, and decides on which condition to send.
  private func look() throws(Failure) -> (stored: ObjectInfo?, PutRequest.Condition) {
    if record.base == .absent, isFirst, store.writing.atomicCreate { return (nil, .absent) }
    guard let found = try info() else { return (nil, .absent) }
    if sums.match(found, isWhole: isWhole) == .same { return (found, .none) }
    let isOurs = record.tried.contains { $0.isClaimed(by: found, isWhole: isWhole) }
    guard isOurs || record.base.matches(found) else {
      switch record.base {
      case .absent: throw .conflict("another writer stored a file of this name first", found)
      case .object: throw .conflict("another writer changed the file since it was read", found)
      }
    }
    return (nil, found.version.map { .version($0) } ?? .none)
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
    if let tag, let found = info.tag { return tag == found }
    return false
  }
}
