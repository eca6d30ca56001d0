package import Platform

/// A faithful Supabase Storage and Auth on loopback, for demonstrations and tests.
///
/// It listens on 127.0.0.1 alone. Everything it holds can be set and read here too, without HTTP;
/// calls are safe from any thread.
package final class StorageEmulator: Sendable {
  private let world: World
  private let faults = FaultTable()
  private let listener = Locked<Listener?>(nil)

  /// Every request that came since the start or the last `clear`.
  package let requests = RequestLog()

  /// - Throws: `Errno` when the data folder cannot be used.
  package init(_ configuration: Configuration = Configuration()) throws(Errno) {
    world = try World(configuration)
  }

  deinit {
    stop()
    world.blobs.close()
  }

  /// The legacy key of the anon role.
  package var anonKey: String { world.keys.anon }
  /// The legacy key of the service role, which passes every policy by.
  package var serviceKey: String { world.keys.service }
  /// The new key of the anon role; it is understood below /storage/v1 and /auth/v1 only.
  package var publishableKey: String { world.keys.publishable }
  /// The new key of the service role; it is understood below /storage/v1 and /auth/v1 only.
  package var secretKey: String { world.keys.secretKey }

  /// Starts to listen; what it holds is kept from a `stop` before.
  ///
  /// - Parameter port: 0 takes a free one.
  /// - Returns: the port.
  /// - Throws: `Errno`, EADDRINUSE when another process has the port.
  @discardableResult
  package func start(port: UInt16 = 0) throws(Errno) -> UInt16 {
    let listener = try Listener(port: port)
    let serving = Serving(service: Service(world: world), faults: faults, log: requests)
    try listener.start { serving.serve($0) }
    self.listener.withLock { $0 = listener }
    return listener.port
  }

  /// Ends every connection at once and frees the port, as when the server is killed.
  package func stop() {
    let listener = listener.withLock { held in
      defer { held = nil }
      return held
    }
    listener?.stop()
  }

  /// Makes a bucket unless it is there.
  ///
  /// - Parameters:
  ///   - sizeLimit: in bytes; nil leaves the server's.
  ///   - allowedTypes: media types, `image/*` among them; nil for all.
  package func createBucket(
    _ name: String, isPublic: Bool = false, sizeLimit: Int? = nil, allowedTypes: [String]? = nil
  ) {
    world.createBucket(
      name,
      Bucket.Settings(isPublic: isPublic, sizeLimit: sizeLimit, allowedTypes: allowedTypes))
  }

  /// Removes a bucket with all that is in it.
  package func removeBucket(_ name: String) {
    world.contents.withLock { $0.removeBucket(name) }
  }

  /// Puts an object in place, over what is there; neither policies nor the rules for keys are
  /// asked, so that keys can be had which only a direct change of the table would make.
  ///
  /// - Parameter owner: the id of the user who counts as its writer.
  /// - Throws: `Errno` when the bytes cannot be kept; ENOENT when there is no such bucket.
  package func put(
    _ bucket: String, _ key: ByteString, _ bytes: [UInt8],
    contentType: String = "application/octet-stream", cacheControl: String = "no-cache",
    userMetadata: JSON? = nil, owner: String? = nil
  ) throws(Errno) {
    try put(
      bucket, keys: [key], bytes, contentType: contentType, cacheControl: cacheControl,
      userMetadata: userMetadata, owner: owner)
  }

  /// Puts many objects with the same bytes in place; they share them in memory and on the disk.
  ///
  /// - Throws: `Errno` when the bytes cannot be kept; ENOENT when there is no such bucket.
  package func put(
    _ bucket: String, keys: [ByteString], _ bytes: [UInt8],
    contentType: String = "application/octet-stream", cacheControl: String = "no-cache",
    userMetadata: JSON? = nil, owner: String? = nil
  ) throws(Errno) {
    guard world.contents.withLock({ $0.buckets[bucket] != nil }) else { throw .noEntry }
    do throws(Failure) {
      try world.put(
        keys, in: bucket, bytes: bytes, type: contentType, cacheControl: cacheControl,
        userMetadata: userMetadata, owner: owner)
    } catch {
      if case .disk(let errno) = error { throw errno }
      throw .io
    }
  }

  /// Removes objects; missing ones do not matter.
  package func remove(_ bucket: String, _ keys: ByteString...) {
    world.contents.withLock { $0.remove(keys, from: bucket) }
  }

  /// The bytes of an object; nil when there is none.
  package func bytes(_ bucket: String, _ key: ByteString) throws(Errno) -> [UInt8]? {
    guard let row = world.find(bucket, key)?.row else { return nil }
    do throws(Failure) {
      return try row.blob.read(0, row.size)
    } catch {
      if case .disk(let errno) = error { throw errno }
      throw .io
    }
  }

  /// What `info` would say of an object, without a request; nil when there is none.
  package func object(_ bucket: String, _ key: ByteString) -> ObjectFacts? {
    world.find(bucket, key)?.row.map(ObjectFacts.init)
  }

  /// The keys of a bucket in the order of their bytes.
  package func keys(_ bucket: String) -> [ByteString] {
    world.contents.withLock { contents in
      contents.buckets[bucket].map { Array($0.rows.keys) } ?? []
    }.sorted()
  }

  /// Sets a fault; the first that fits a request befalls it.
  package func setFault(_ fault: Fault) { faults.add(fault) }

  /// Clears every fault; requests that hang lose their connection.
  package func clearFaults() { faults.clear() }

  /// Moves the clock of tokens and timestamps.
  package func advanceClock(seconds: Int64) { world.advanceClock(seconds: seconds) }

  /// How long the edge before the hosted service hands out again what it has handed out, whatever
  /// was written since; for the same path, query and token. Zero is no edge.
  package func setStaleness(_ span: Span) { world.setStaleness(span) }

  /// Replaces users and policies; tokens that were given stay good until they expire.
  package func setPolicies(_ policies: Policies) {
    world.contents.withLock { $0.policies = policies }
  }

  /// Takes users, policies and buckets from the text of a file that `Policies` describes.
  ///
  /// - Throws: `Unreadable`, saying what is wrong; nothing is changed then.
  package func readUsers(_ bytes: [UInt8]) throws(Policies.Unreadable) {
    let json: JSON
    do throws(JSON.Malformed) {
      json = try JSON(reading: bytes)
    } catch {
      throw Policies.Unreadable(description: "no JSON, from byte \(error.offset) on")
    }
    let policies = try Policies(reading: json)
    let buckets = try Policies.buckets(in: json)
    setPolicies(policies)
    for (name, settings) in buckets { world.createBucket(name, settings) }
  }

  /// Sets how long new access tokens live and how long used refresh tokens are taken, in seconds.
  package func setTokens(life: Int64, reuseInterval: Int64 = 10) {
    world.contents.withLock { contents in
      contents.tokenLife = life
      contents.reuseInterval = reuseInterval
    }
  }

  /// Ends every session of a user, or of all; access tokens stay good for Storage.
  package func revokeSessions(of email: String? = nil) {
    world.contents.withLock { contents in
      let user = contents.policies.users.first { $0.email == email }?.id
      let ended = contents.sessions.values.filter { email == nil || $0.user == user }
      contents.removeSessions(ended.map(\.id))
    }
  }
}

/// What the store says of one object.
package struct ObjectFacts: Sendable {
  /// Stays through overwrites and moves.
  package let id: String
  /// Another one after every write.
  package let version: String
  /// In bytes.
  package let size: Int
  /// The media type, as the writer sent it.
  package let contentType: String
  /// The Cache-Control header that a download carries.
  package let cacheControl: String
  /// Quotes included.
  package let tag: String
  /// The id of the user who wrote it last; nil for a caller without one.
  package let owner: String?
  /// What the writer sent as metadata; an empty object for none.
  package let userMetadata: JSON?
  /// When the key came into being.
  package let createdAt: Timestamp
  /// When it was last written.
  package let updatedAt: Timestamp

  init(_ row: ObjectRow) {
    id = row.id
    version = row.version
    size = row.size
    contentType = row.type
    cacheControl = row.cacheControl
    tag = row.tag
    owner = row.owner
    userMetadata = row.userMetadata
    createdAt = row.createdAt
    updatedAt = row.updatedAt
  }
}
