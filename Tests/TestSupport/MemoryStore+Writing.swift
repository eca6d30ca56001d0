package import BucketStore
package import Platform

extension MemoryStore: WritableStore {
  package var writing: WritingCapabilities {
    get { state.withLock { $0.writing } }
    set { state.withLock { $0.writing = newValue } }
  }

  /// The most writes that were under way at a time.
  package var mostUnderway: Int { state.withLock { $0.mostUnderway } }

  /// How often a write began while another of the same name was under way.
  package var overlaps: Int { state.withLock { $0.overlaps } }

  /// Uploads that are open.
  package var openUploads: [String] { state.withLock { $0.uploads.keys.sorted() } }

  /// Forgets the open uploads, as a store does after a day.
  package func forgetUploads() { state.withLock { $0.uploads = [:] } }

  /// The bytes of an object; nil when there is none.
  package func bytes(_ bucket: ByteString, _ key: ByteString) -> [UInt8]? {
    object(ObjectName(bucket: bucket, key: key))?.bytes
  }

  /// The facts of an object, asked for without leaving a trace.
  package func facts(_ bucket: ByteString, _ key: ByteString) -> ObjectInfo? {
    object(ObjectName(bucket: bucket, key: key))?.info
  }

  /// The keys of a bucket.
  package func keys(_ bucket: ByteString) -> Set<ByteString> {
    state.withLock { state in Set((state.buckets[bucket] ?? [:]).keys) }
  }

  package func allows(_ key: ByteString) -> Bool { !key.bytes.contains(0) }

  package func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    let name = request.object
    begin(name)
    defer { end(name) }
    let fault = try arrive(.put, name.bucket, name.key, call)
    if case .lookFirst(let gate)? = fault {
      try Self.look(at: source, request.size)
      if !gate.pass(call.cancellation) { throw StoreError(.cancelled, "cancelled") }
    }
    var bytes = try Self.read(source, 0, request.size, progress, call)
    switch fault {
    case .cut: throw StoreError(.connectivity, "connection cut")
    case .flip: if !bytes.isEmpty { bytes[0] ^= 0xFF }
    case .commitAfter(let gate):
      if !gate.pass(call.cancellation) {
        commit(request, bytes, after: gate)
        throw StoreError(.cancelled, "cancelled")
      }
    default: break
    }
    try store(request, bytes)
    try answer(fault, call)
  }

  private static func look(at source: any PutSource, _ size: Int64) throws(StoreError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(size), alignment: 1)
    defer { buffer.deallocate() }
    do throws(Errno) {
      _ = try source.readAhead(buffer, at: 0)
    } catch {
      throw StoreError(.damaged, "the bytes cannot be read: \(error)")
    }
  }

  /// Waits until what was cancelled too late has taken effect.
  package func settle() {
    for thread in state.withLock({ $0.late }) { thread.join() }
  }

  private func commit(_ request: PutRequest, _ bytes: [UInt8], after gate: Gate) {
    do throws(Errno) {
      let thread = try Thread(name: "late") {
        _ = gate.pass(Cancellation())
        do throws(StoreError) { try self.store(request, bytes) } catch {
          // Refused, with nobody left to be told.
        }
      }
      state.withLock { $0.late.append(thread) }
    } catch {
      preconditionFailure("no thread: \(error)")
    }
  }

  package func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    let name = request.object
    let fault = try arrive(.beginUpload, name.bucket, name.key, call)
    guard writing.resumable != nil else {
      throw StoreError(.unsupported, "no resumable uploads")
    }
    let token = state.withLock { state -> String in
      state.writes += 1
      let token = "upload-\(state.writes)"
      state.uploads[token] = (request, [])
      return token
    }
    try answer(fault, call)
    return UploadToken(token)
  }

  package func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    let name = request.object
    begin(name)
    defer { end(name) }
    let fault = try arrive(.continueUpload, name.bucket, name.key, call)
    guard let upload = state.withLock({ $0.uploads[token.text] }) else {
      throw StoreError(.notFound, "no such upload")
    }
    let had = Int64(upload.bytes.count)
    if case .cut(let count) = fault {
      let part = try Self.read(source, had, min(Int64(count), request.size - had), progress, call)
      state.withLock { $0.uploads[token.text]?.bytes += part }
      throw StoreError(.connectivity, "connection cut")
    }
    let rest = try Self.read(source, had, request.size - had, progress, call)
    state.withLock { $0.uploads[token.text] = nil }
    try store(upload.request, upload.bytes + rest)
    try answer(fault, call)
  }

  package func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    _ = try arrive(.abandonUpload, request.object.bucket, request.object.key, call)
    state.withLock { $0.uploads[token.text] = nil }
  }

  package func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    let fault = try arrive(.delete, object.bucket, object.key, call)
    let found = state.withLock { $0.take(object) != nil }
    guard found else { throw StoreError(.notFound, "no such object") }
    try answer(fault, call)
  }

  package func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    let fault = try arrive(.delete, bucket, keys.first ?? "", call)
    let allowed = if case .cut(let count) = fault { Array(keys.prefix(count)) } else { keys }
    let deleted = state.withLock { state in
      Set(allowed.filter { state.take(ObjectName(bucket: bucket, key: $0)) != nil })
    }
    try answer(fault, call)
    return deleted
  }

  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    let fault = try arrive(.move, object.bucket, object.key, call)
    let failure = state.withLock { state -> StoreError? in
      guard state.buckets[object.bucket]?[key] == nil else {
        return StoreError(.exists, "there is one already")
      }
      guard let moved = state.take(object) else { return StoreError(.notFound, "no such object") }
      _ = state.write(
        object.bucket, key, moved.bytes, contentType: moved.info.contentType,
        userMetadata: moved.info.userMetadata)
      return nil
    }
    if let failure { throw failure }
    try answer(fault, call)
  }

  package func copy(_ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call)
    throws(StoreError)
  {
    let fault = try arrive(.copy, object.bucket, object.key, call)
    let failure = state.withLock { state -> StoreError? in
      guard overwriting || state.buckets[target.bucket]?[target.key] == nil else {
        return StoreError(.exists, "there is one already")
      }
      guard let source = state.buckets[object.bucket]?[object.key],
        state.buckets[target.bucket] != nil
      else { return StoreError(.notFound, "no such object") }
      _ = state.write(
        target.bucket, target.key, source.bytes, contentType: source.info.contentType,
        userMetadata: source.info.userMetadata)
      return nil
    }
    if let failure { throw failure }
    try answer(fault, call)
  }

  // MARK: - Parts

  private func begin(_ object: ObjectName) {
    state.withLock { state in
      if state.underway[object, default: 0] > 0 { state.overlaps += 1 }
      state.underway[object, default: 0] += 1
      state.mostUnderway = max(state.mostUnderway, state.underway.values.reduce(0, +))
    }
  }

  private func end(_ object: ObjectName) {
    state.withLock { $0.underway[object, default: 0] -= 1 }
  }

  private func answer(_ fault: Fault?, _ call: Call) throws(StoreError) {
    switch fault {
    case .loseAnswer(let error): throw error
    case .answerAfter(let gate):
      guard gate.pass(call.cancellation) else { throw StoreError(.cancelled, "cancelled") }
    default: break
    }
  }

  private func store(_ request: PutRequest, _ bytes: [UInt8]) throws(StoreError) {
    let name = request.object
    let failure = state.withLock { state -> StoreError? in
      guard let bucket = state.buckets[name.bucket] else {
        return StoreError(.notFound, "no such bucket")
      }
      let found = bucket[name.key]
      switch request.condition {
      case .absent where found != nil && state.writing.atomicCreate:
        return StoreError(.exists, "there is one already")
      case .version(let version)
      where found?.info.version != version && state.writing.atomicReplace:
        return StoreError(.conflict, "another writer was first")
      default: break
      }
      _ = state.write(
        name.bucket, name.key, bytes, contentType: request.contentType,
        userMetadata: request.userMetadata)
      return nil
    }
    if let failure { throw failure }
  }

  private static func read(
    _ source: any PutSource, _ start: Int64, _ count: Int64,
    _ progress: @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Int(max(count, 0)))
    var done = 0
    while done < bytes.count {
      if call.cancellation.isCancelled { throw StoreError(.cancelled, "cancelled") }
      let end = min(done + 65_536, bytes.count)
      do throws(Errno) {
        let read = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
          try source.read(
            UnsafeMutableRawBufferPointer(
              UnsafeMutableBufferPointer(rebasing: buffer[done..<end])),
            at: start + Int64(done))
        }
        guard read == end - done else { throw Errno.io }
      } catch {
        throw StoreError(.damaged, "the bytes cannot be read: \(error)")
      }
      done = end
      progress(start + Int64(done))
    }
    return bytes
  }
}

extension MemoryStore.State {
  /// Writes an object with a new time and version; its tag is the MD5 of its bytes.
  mutating func write(
    _ bucket: ByteString, _ key: ByteString, _ bytes: [UInt8], contentType: String?,
    userMetadata: [String: String]?
  ) -> ObjectInfo {
    writes += 1
    let info = ObjectInfo(
      key: key, size: Int64(bytes.count), tag: "\"\(Digest.hex(.md5, of: bytes))\"",
      version: "v\(writes)", modified: Timestamp(seconds: 1_700_000_000 + writes),
      contentType: contentType, userMetadata: userMetadata)
    buckets[bucket, default: [:]][key] = MemoryStore.Object(bytes: bytes, info: info)
    order[bucket] = nil
    return info
  }

  /// Removes an object.
  mutating func take(_ object: ObjectName) -> MemoryStore.Object? {
    order[object.bucket] = nil
    return buckets[object.bucket]?.removeValue(forKey: object.key)
  }
}
