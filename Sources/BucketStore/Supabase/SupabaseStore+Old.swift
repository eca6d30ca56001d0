import Platform

/// Calls of servers that lack the newer ones: listing version 1 in place of 2, and no info.
extension SupabaseStore {
  /// The whole folder in one page: the older call has neither the order nor the completeness that
  /// pages of their own would need.
  func oldList(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    guard request.delimited else {
      throw StoreError(.unsupported, "this server lists folders only, not all keys at once")
    }
    return try listing(request.bucket, request.prefix, call).read()
  }

  private func listing(_ bucket: ByteString, _ prefix: ByteString, _ call: Call)
    -> SupabaseOldListing
  {
    let cut = prefix.bytes.lastIndex(of: ByteString.slash).map { $0 + 1 } ?? 0
    return SupabaseOldListing(
      store: self, bucket: bucket, folder: ByteString(prefix.bytes[..<cut]),
      start: ByteString(prefix.bytes[cut...]), call: call)
  }

  /// One answer of listing version 1.
  func oldPage(_ bucket: ByteString, _ body: SupabaseJSON.OldListBody, _ call: Call)
    throws(StoreError) -> [SupabaseJSON.Row]
  {
    let response = try send(
      "POST", "/object/list/" + Percent.encode(bucket),
      headers: SupabaseHeaders.json, body: .bytes(SupabaseJSON.encode(body)), mayCompress: true,
      call)
    guard response.status == 200 else {
      throw SupabaseErrors.verdict(on: response, reading: true).error
    }
    return try SupabaseJSON.decode([SupabaseJSON.Row].self, from: response)
  }

  /// Which of these exact keys the caller may read, by the call that signs many at once.
  func existing(_ keys: [ByteString], in bucket: ByteString, _ call: Call) throws(StoreError)
    -> Set<ByteString>
  {
    var result: Set<ByteString> = []
    var rest = keys[...]
    while !rest.isEmpty {
      // The server takes 1000 keys, in a body of one MiB.
      var bytes = 0
      let batch = rest.prefix(1000).prefix { key in
        bytes += key.count + 8
        return bytes < 500_000
      }
      guard !batch.isEmpty else { throw StoreError(.server, "a key is too long to be asked for") }
      rest = rest.dropFirst(batch.count)
      let body = SupabaseJSON.SignBody(paths: batch.map(\.text))
      let response = try send(
        "POST", "/object/sign/" + Percent.encode(bucket),
        headers: SupabaseHeaders.json, body: .bytes(SupabaseJSON.encode(body)), call)
      guard response.status == 200 else {
        throw SupabaseErrors.verdict(on: response, reading: true).error
      }
      let items = try SupabaseJSON.decode([SupabaseJSON.Signed].self, from: response)
      for item in items where item.error == nil && item.signedURL != nil {
        result.insert(ByteString(item.path))
      }
    }
    return result
  }

  /// What a listing says of one object, where there is no info call.
  ///
  /// The same facts, from the same row, as a listing of its folder: no version, no user metadata.
  func oldInfo(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    _ = try path("", object)
    guard object.key.string != nil, try existing([object.key], in: object.bucket, call).count == 1
    else { throw StoreError(.notFound, "the store has no “\(object)” for this caller") }
    if let info = try listing(object.bucket, object.key, call).find() { return info }
    // Searching was not always reliable; the object itself is.
    let head = try oldHead(object, call)
    return ObjectInfo(
      key: object.key, size: head.size, tag: head.tag, modified: head.modified,
      contentType: head.contentType)
  }

  /// An object's head, by its first byte.
  func oldHead(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectHead {
    var request = GetRequest(object: object, range: 0..<1)
    while true {
      let sink = HeadSink()
      let answer: Answer
      do throws(StoreError) {
        answer = try download(request, into: sink, call)
      } catch {
        if let head = sink.head { return head }
        throw error
      }
      switch answer {
      case .outcome(.complete(let head)): return head
      case .outcome(.notModified):
        throw StoreError(.server, "“not modified” was answered to a question that was not asked")
      case .failed(let verdict):
        // An empty object has no first byte, which some servers call an error of their own.
        let mayBeEmpty = verdict.error.kind == .damaged || verdict.error.kind == .server
        guard request.range != nil, mayBeEmpty else { throw verdict.error }
        request.range = nil
      }
    }
  }
}

/// Keeps the head and declines the bytes.
private final class HeadSink: GetSink {
  private let state = Locked<ObjectHead?>(nil)

  var head: ObjectHead? { state.withLock { $0 } }

  func begin(_ head: ObjectHead) -> Bool {
    state.withLock { $0 = head }
    return (head.range?.count).map { $0 <= 1 } ?? false
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
}

extension ByteString {
  /// The text of a key, which is known to be text.
  var text: String { String(decoding: bytes, as: UTF8.self) }
}
