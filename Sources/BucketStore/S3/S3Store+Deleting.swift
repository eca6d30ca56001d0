package import Platform

/// Deleting. The server says "deleted" of what was not there, so that is looked at first.
extension S3Store {
  package func delete(_ object: ObjectName, _ call: Call) throws(StoreError) {
    _ = try info(object, call)
    try deleteUnseen(object, call)
  }

  func deleteUnseen(_ object: ObjectName, _ call: Call) throws(StoreError) {
    var question = Question("DELETE", object)
    question.repetition = .unlessWhole
    _ = try ask(question, expecting: [200, 204], call)
  }

  package func delete(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    var found: [ByteString] = []
    for key in Set(keys).sorted() {
      do throws(StoreError) {
        _ = try info(ObjectName(bucket: bucket, key: key), call)
        found.append(key)
      } catch {
        // Its absence from the answer says so.
        guard error.kind == .notFound || error.kind == .refused else { throw error }
      }
    }
    var deleted: Set<ByteString> = []
    let (inOne, alone) = Self.parted(found)
    for start in stride(from: 0, to: inOne.count, by: Self.batch) {
      let part = Array(inOne[start..<min(start + Self.batch, inOne.count)])
      deleted.formUnion(try deleteBatch(part, in: bucket, call))
    }
    for key in alone {
      do throws(StoreError) {
        try deleteUnseen(ObjectName(bucket: bucket, key: key), call)
        deleted.insert(key)
      } catch {
        guard error.kind == .notFound || error.kind == .refused else { throw error }
      }
    }
    return deleted
  }

  private static let batch = 1000

  /// One key needs no list, and a key that XML cannot hold has no place in one.
  private static func parted(_ keys: [ByteString]) -> (inOne: [ByteString], alone: [ByteString]) {
    if keys.count < 2 { return ([], keys) }
    return (keys.filter { XMLText.canHold($0) }, keys.filter { !XMLText.canHold($0) })
  }

  private func deleteBatch(_ keys: [ByteString], in bucket: ByteString, _ call: Call)
    throws(StoreError) -> Set<ByteString>
  {
    var text = "<Delete xmlns=\"\(XMLText.namespace)\">"
    for key in keys { text += "<Object><Key>\(XMLText.escaped(key))</Key></Object>" }
    let body = Array((text + "</Delete>").utf8)
    var question = Question("POST", bucket: bucket)
    question.query = [("delete", "")]
    var digest = Digest(.md5)
    body.withUnsafeBytes { digest.update($0) }
    question.headers = [
      ("Content-Type", "application/xml"), ("Content-MD5", Base64Text.encode(digest.bytes())),
    ]
    question.body = .bytes(body)
    let response = try ask(question, call)
    var deleted: Set<ByteString> = []
    var failure: StoreError?
    var code = ""
    var root: String?
    let isRead = XMLReader.read(response.body) { path, bytes in
      switch path.dropFirst() {
      case ["Deleted", "Key"]: deleted.insert(ByteString(bytes))
      case ["Error", "Code"]: code = String(decoding: bytes, as: UTF8.self)
      case ["Error"]:
        // What may not be deleted is absent from the answer.
        if code != "AccessDenied" {
          failure = StoreError(.server, "the store deletes not all: \(SupabaseErrors.line(code))")
        }
      default: if path.count == 1 { root = path[0] }
      }
    }
    guard isRead, root == "DeleteResult" else { throw Self.strange("result") }
    if let failure { throw failure }
    return deleted.intersection(keys)
  }
}
