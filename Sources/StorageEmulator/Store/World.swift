import Platform

/// The emulator's state and how to reach it: what every route works on.
final class World: Sendable {
  let configuration: Configuration
  let keys: Keys
  let blobs: BlobStore
  let contents: Locked<Contents>
  /// Uploads in parts by their ids; they end with the process.
  let uploads = Locked<[String: ResumableUpload]>([:])
  let edge = Locked(EdgeCache())

  init(_ configuration: Configuration) throws(Errno) {
    self.configuration = configuration
    if let data = configuration.data { try BlobStore.makeFolder(data) }
    keys = try Keys(data: configuration.data)
    blobs = try BlobStore(data: configuration.data)
    var contents = Contents()
    if let data = configuration.data {
      contents = try Journal.replay(path: data + "/journal", blobs: blobs)
    }
    contents.policies = configuration.policies
    contents.tokenLife = configuration.tokenLife
    contents.reuseInterval = configuration.reuseInterval
    self.contents = Locked(contents)
  }

  var now: Timestamp { contents.withLock { $0.now } }

  var isHosted: Bool { configuration.profile == .hosted }

  /// The blob's time as the blob store of this profile keeps it.
  func blobTime(_ now: Timestamp) -> Timestamp { isHosted ? now.wholeSeconds : now }

  /// The bucket and one row of it, whoever asks.
  func find(_ bucket: String, _ key: ByteString) -> (bucket: Bucket.Settings, row: ObjectRow?)? {
    contents.withLock { contents in
      contents.buckets[bucket].map { ($0.settings, $0.rows[key]) }
    }
  }
}

extension World {
  /// Moves the emulator's clock on; below zero sets it back.
  func advanceClock(seconds: Int64) {
    contents.withLock { contents in
      contents.clockOffset =
        contents.clockOffset
        + Span(nanoseconds: seconds.multipliedReportingOverflow(by: 1_000_000_000).partialValue)
    }
  }

  /// Makes a bucket unless it is there.
  func createBucket(_ name: String, _ settings: Bucket.Settings) {
    contents.withLock { contents in
      guard contents.buckets[name] == nil else { return }
      contents.setBucket(
        Bucket(name: name, settings: settings, owner: nil, now: contents.now))
    }
  }

  /// Puts objects with the same bytes in place, as their owner would; nothing is checked.
  func put(
    _ keys: [ByteString], in bucket: String, bytes: [UInt8], type: String, cacheControl: String,
    userMetadata: JSON?, owner: String?
  ) throws(Failure) {
    let writer = BlobWriter(blobs, tagsByPart: isHosted)
    try writer.append(bytes)
    let (blob, tag) = try writer.finish()
    contents.withLock { contents in
      let now = contents.now
      let rows = keys.map { key in
        // Looked up one by one: a copy of the bucket held here would be paid for at the change.
        let known = contents.buckets[bucket]?.rows[key]
        return ObjectRow(
          id: known?.id ?? Identifier.uuid(), version: Identifier.uuid(), key: key, owner: owner,
          createdAt: known?.createdAt ?? now, updatedAt: now, modifiedAt: blobTime(now),
          size: bytes.count, type: type, cacheControl: cacheControl, tag: tag, robots: nil,
          userMetadata: userMetadata ?? [:], blob: blob)
      }
      contents.set(rows, in: bucket)
    }
  }
}
