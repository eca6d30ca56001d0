import Platform

/// An upload in parts: what is to come of it, and the bytes that are there.
///
/// One request at a time works on it. A newcomer asks the one at work to stop, and waits for it.
final class ResumableUpload: Sendable {
  /// What the request that opened it said.
  struct Plan: Sendable {
    var bucket: String
    var key: ByteString
    /// That of the object to be.
    var version: String
    var owner: String?
    var type: String
    var cacheControl: String
    /// Nil keeps what an object that is there has.
    var userMetadata: JSON?
    /// The header as it was sent.
    var header: String
    var expires: Timestamp
  }

  private struct State {
    var writer: BlobWriter
    /// Bytes of the whole; nil until the client tells.
    var length: Int?
    var isBusy = false
    var mustYield = false
    /// All bytes came; the object was made of them, or they were thrown away.
    var isFinished = false
  }

  /// The size of the parts that the blob store of the hosted service gets.
  private static let partSize = 6 << 20

  let plan: Plan
  private let state: Locked<State>

  init(_ plan: Plan, length: Int?, in world: World) {
    self.plan = plan
    state = Locked(
      State(
        writer: BlobWriter(world.blobs, tagsByPart: world.isHosted, partSize: Self.partSize),
        length: length))
  }

  var id: String {
    Base64.encodeURL(Array("\(plan.bucket)/\(plan.key.text)/\(plan.version)".utf8))
  }

  /// The bucket and the key in an id.
  static func place(of id: String) -> (bucket: String, key: ByteString)? {
    guard let bytes = Base64.decode(id) else { return nil }
    let parts = ByteString(bytes).split(at: ByteString.slash)
    guard parts.count >= 3, let bucket = parts[0].string else { return nil }
    return (bucket, ByteString(parts[1..<(parts.count - 1)].joinedBySlash))
  }

  var offset: Int { state.withLock { $0.writer.count } }

  var length: Int? { state.withLock { $0.length } }

  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Tells the length that was left open.
  func setLength(_ length: Int) { state.withLock { $0.length = length } }

  func append(_ bytes: [UInt8]) throws(Failure) {
    try state.withLock { (state) throws(Failure) in try state.writer.append(bytes) }
  }

  /// Takes the bytes out, once all are there.
  func finish() throws(Failure) -> (blob: Blob, tag: String) {
    try state.withLock { (state) throws(Failure) in
      state.isFinished = true
      return try state.writer.finish()
    }
  }

  /// Another request waits for this one to stop.
  var mustYield: Bool { state.withLock { $0.mustYield } }

  /// Waits until no other request works on it.
  ///
  /// - Returns: false when that took longer than the server's five seconds.
  func take() -> Bool {
    state.wait(until: .now + .seconds(5)) { state -> Bool? in
      guard !state.isBusy else {
        state.mustYield = true
        return nil
      }
      state.isBusy = true
      state.mustYield = false
      return true
    } ?? false
  }

  func release() {
    state.withLock { $0.isBusy = false }
    state.wakeAll()
  }
}

extension ArraySlice<ByteString> {
  fileprivate var joinedBySlash: [UInt8] {
    var bytes: [UInt8] = []
    for (index, part) in enumerated() {
      if index > 0 { bytes.append(ByteString.slash) }
      bytes += part.bytes
    }
    return bytes
  }
}
