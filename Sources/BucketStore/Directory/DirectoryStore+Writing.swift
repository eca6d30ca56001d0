import Glibc
package import Platform

/// Writing: a temporary file in the target's folder, durable, then one rename.
extension DirectoryStore: WritableStore {
  package var writing: WritingCapabilities {
    WritingCapabilities(atomicCreate: true, atomicReplace: false, resumable: nil)
  }

  package func allows(_ key: ByteString) -> Bool {
    key.count <= 4000
      && key.split(at: ByteString.slash).allSatisfy { Self.isSegment($0) && $0.count <= 255 }
  }

  package func put(
    _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    try check(request.object)
    try compare(request)
    let size = request.size
    let draft = try DirectoryDraft(of: request.object, in: root)
    try draft.fill(from: source, size: size, progress: progress, call)
    try draft.describe(request)
    try draft.publish(overwriting: request.condition != .absent)
  }

  package func beginUpload(_ request: PutRequest, _ call: Call) throws(StoreError) -> UploadToken {
    throw StoreError(.unsupported, "a directory has no resumable uploads")
  }

  package func continueUpload(
    _ token: UploadToken, _ request: PutRequest, from source: any PutSource,
    progress: @escaping @Sendable (Int64) -> Void, _ call: Call
  ) throws(StoreError) {
    throw StoreError(.unsupported, "a directory has no resumable uploads")
  }

  package func abandonUpload(_ token: UploadToken, _ request: PutRequest, _ call: Call)
    throws(StoreError)
  {
    throw StoreError(.unsupported, "a directory has no resumable uploads")
  }

  package func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    // Opened first: what is no regular file is no object, and stays.
    _ = try open(object)
    do throws(Errno) {
      try root.remove(object.bucket + "/" + object.key)
    } catch {
      throw Self.error(error, "\(object)")
    }
    removeEmptyFolders(above: object)
  }

  package func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    guard try bucketExists(bucket, call) else {
      throw StoreError(.notFound, "bucket \(bucket): no such bucket")
    }
    var deleted: Set<ByteString> = []
    for key in keys {
      if call.cancellation.isCancelled { throw StoreError(.cancelled, "cancelled") }
      do throws(StoreError) {
        try delete(ObjectName(bucket: bucket, key: key), call)
        deleted.insert(key)
      } catch {
        // Its absence from the answer says so.
        guard error.kind == .notFound || error.kind == .refused else { throw error }
      }
    }
    return deleted
  }

  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    let target = ObjectName(bucket: object.bucket, key: key)
    try check(target)
    _ = try open(object)
    // A draft holds the target's folder, and is not written.
    let draft = try DirectoryDraft(of: target, in: root)
    try draft.take(object, from: root)
    removeEmptyFolders(above: object)
  }

  package func copy(
    _ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call
  ) throws(StoreError) {
    try check(target)
    let source = try open(object)
    let facts: ObjectInfo
    do throws(Errno) {
      facts = try DirectoryFacts.info(of: source, key: object.key)
    } catch {
      throw Self.error(error, "\(object)")
    }
    let size = facts.size ?? 0
    let request = PutRequest(
      object: target, size: size, contentType: facts.contentType ?? "",
      userMetadata: facts.userMetadata ?? [:], condition: .none)
    let draft = try DirectoryDraft(of: target, in: root)
    try draft.fill(from: FileSource(source), size: size, progress: { _ in }, call)
    try draft.describe(request)
    try draft.publish(overwriting: overwriting)
  }

  // MARK: - Parts

  private func check(_ object: ObjectName) throws(StoreError) {
    guard Self.isSegment(object.bucket), allows(object.key) else {
      throw StoreError(.keyRefused, "\(object): not a name that a file can have")
    }
    guard try bucketExists(object.bucket, Call()) else {
      throw StoreError(.notFound, "\(object.bucket): no such bucket")
    }
  }

  /// Compares the version that is there with the one asked for; another writer may still come
  /// between this and the rename.
  private func compare(_ request: PutRequest) throws(StoreError) {
    guard case .version(let version) = request.condition else { return }
    do throws(StoreError) {
      let found = try info(request.object, Call())
      if found.version == version { return }
    } catch {
      guard error.kind == .notFound else { throw error }
    }
    throw StoreError(.conflict, "\(request.object): another writer was first")
  }

  /// Removes the folders of a key that hold nothing any more: a store has none without objects.
  private func removeEmptyFolders(above object: ObjectName) {
    var key = object.key
    while let cut = key.bytes.lastIndex(of: ByteString.slash) {
      key = ByteString(key.bytes[..<cut])
      do throws(Errno) {
        try root.removeFolder(object.bucket + "/" + key)
      } catch {
        // Not empty, as a rule; whatever it is, a folder left behind is not seen.
        return
      }
    }
  }
}

/// An open file as the source of a copy.
private final class FileSource: PutSource {
  private let file: File

  init(_ file: consuming File) {
    self.file = file
  }

  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    try file.read(buffer, at: offset)
  }
}
