import Platform

/// All that the emulator knows, behind one lock in `World`.
struct Contents: Sendable {
  var buckets: [String: Bucket] = [:]
  var sessions: [String: Session] = [:]
  var policies = Policies()
  /// How far the emulator's clock is ahead of the machine's.
  var clockOffset = Span.zero
  /// How long access tokens live, in seconds.
  var tokenLife: Int64 = 3600
  /// How long a used refresh token is still taken, in seconds.
  var reuseInterval: Int64 = 10
  var journal: Journal?

  var now: Timestamp { (Timestamp.now + clockOffset).milliseconds }

  mutating func setBucket(_ bucket: Bucket) {
    buckets[bucket.name] = bucket
    journal?.append(Journal.record(of: bucket))
  }

  mutating func removeBucket(_ name: String) {
    buckets[name] = nil
    journal?.append(["removed_bucket": .string(name)])
  }

  mutating func set(_ rows: [ObjectRow], in bucket: String) {
    for row in rows { buckets[bucket]?.set(row) }
    journal?.append(contentsOf: rows.lazy.map { Journal.record(of: $0, in: bucket) })
  }

  mutating func remove(_ keys: [ByteString], from bucket: String) {
    for key in keys { buckets[bucket]?.remove(key) }
    journal?.append(
      contentsOf: keys.lazy.map { ["removed": .string($0.text), "bucket": .string(bucket)] })
  }

  mutating func setSession(_ session: Session) {
    sessions[session.id] = session
    journal?.append(Journal.record(of: session))
  }

  mutating func removeSessions(_ ids: [String]) {
    for id in ids { sessions[id] = nil }
    journal?.append(contentsOf: ids.lazy.map { ["removed_session": .string($0)] })
  }
}

/// One sign-in: a chain of refresh tokens of which the last is the active one.
struct Session: Sendable {
  let id: String
  let user: String
  var active: String
  /// The token from which the active one came; taken once more when its answer was lost.
  var parent: String?
  /// Every token used before, and when.
  var used: [String: Timestamp] = [:]
}
