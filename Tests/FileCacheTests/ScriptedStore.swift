import BucketStore
import Glibc
import Platform
import TestSupport

/// A store whose reads are played by the test, one answer for each request.
final class ScriptedStore: BucketStore {
  typealias Answer = @Sendable (GetRequest, any GetSink, Call) throws(StoreError) -> GetOutcome

  private struct State {
    var answers: [Answer] = []
    var requests: [GetRequest] = []
    var session = SessionState.keyOnly
  }

  private let state = Locked(State())

  let capabilities = StoreCapabilities(flatListing: true, pageSize: 1000)

  var session: SessionState {
    get { state.withLock { $0.session } }
    set { state.withLock { $0.session = newValue } }
  }

  /// The reads that were asked for.
  var requests: [GetRequest] { state.withLock { $0.requests } }

  /// Plays answers, each once, in order; the last one again and again.
  func play(_ answers: Answer...) {
    state.withLock { state in
      state.answers = answers
      state.requests = []
    }
  }

  func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
    -> GetOutcome
  {
    let answer = state.withLock { state -> Answer? in
      state.requests.append(request)
      return state.answers.count > 1 ? state.answers.removeFirst() : state.answers.first
    }
    guard let answer else { throw StoreError(.server, "no answer was scripted") }
    return try answer(request, sink, call)
  }

  func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] { [] }
  func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool { true }
  func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    ListPage(objects: [], folders: [], next: nil)
  }
  func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    throw StoreError(.unsupported, "not scripted")
  }
}

/// One version of an object, and how it is sent.
struct Version: Sendable {
  var bytes: [UInt8]
  var tag: String?
  var modified: Timestamp? = Timestamp(seconds: 1_700_000_000)
  /// The size that the head announces; nil: does not say.
  var announced: Int64?
  var honoursRange = true

  /// With the MD5 of its bytes as tag.
  init(_ bytes: [UInt8]) {
    self.init(bytes, tag: "\"\(Digest.hex(.md5, of: bytes))\"")
  }

  init(_ bytes: [UInt8], tag: String?) {
    self.bytes = bytes
    self.tag = tag
    announced = Int64(bytes.count)
  }

  /// An answer as a good store gives it.
  ///
  /// - Parameters:
  ///   - cut: after how many bytes of this answer the connection breaks.
  ///   - piece: how many bytes come at a time.
  ///   - ignoresCondition: send the bytes although the tag is the same.
  ///   - failure: thrown after the last byte, and where the connection breaks.
  ///   - pause: called before the bytes at each position.
  func answer(
    cut: Int? = nil, piece: Int = 16_384, ignoresCondition: Bool = false,
    failure: StoreError? = nil, pause: (@Sendable (Int64) -> Void)? = nil
  ) -> ScriptedStore.Answer {
    { (request, sink, call) throws(StoreError) in
      if let wanted = request.unlessTag, wanted == tag, !ignoresCondition { return .notModified }
      let all = 0..<Int64(bytes.count)
      let range = honoursRange ? request.range?.clamped(to: all) ?? all : all
      let head = ObjectHead(
        size: announced, range: announced == nil ? nil : range, tag: tag, modified: modified)
      guard sink.begin(head) else { throw StoreError(.cancelled, "declined") }
      var position = Int(range.lowerBound)
      let end = min(Int(range.upperBound), position + (cut ?? .max / 2))
      while position < end {
        pause?(Int64(position))
        if call.cancellation.isCancelled { throw StoreError(.cancelled, "cancelled") }
        let next = min(position + piece, end)
        guard bytes[position..<next].withUnsafeBytes({ sink.receive($0) }) else {
          throw StoreError(.cancelled, "declined")
        }
        position = next
      }
      if cut != nil, position < Int(range.upperBound) {
        throw failure ?? StoreError(.connectivity, "the connection was cut")
      }
      if let failure { throw failure }
      return .complete(head)
    }
  }
}

/// An answer whose body is cut before its first byte, though a length was announced.
func cutAtOnce(_ version: Version) -> ScriptedStore.Answer {
  version.answer(cut: 0, failure: StoreError(.damaged, "fewer bytes than announced"))
}

/// An answer that comes after the request has waited for its turn, three seconds.
func afterItsTurn(_ version: Version) -> ScriptedStore.Answer {
  let answer = version.answer()
  return { (request, sink, call) throws(StoreError) in
    for _ in 0..<300 {
      usleep(10_000)
      sink.goesOn()
    }
    return try answer(request, sink, call)
  }
}

/// An answer that says "not modified", whatever was asked.
func notModified() -> ScriptedStore.Answer {
  { (request, _, _) throws(StoreError) in
    guard request.range == nil else { throw StoreError(.server, "no range was expected") }
    return .notModified
  }
}

/// An answer that ends after its head.
func headAlone(_ head: ObjectHead) -> ScriptedStore.Answer {
  { (_, sink, _) throws(StoreError) in
    guard sink.begin(head) else { throw StoreError(.cancelled, "declined") }
    return .complete(head)
  }
}

/// An answer that is a failure.
func failure(_ kind: StoreError.Kind) -> ScriptedStore.Answer {
  { (_, _, _) throws(StoreError) in throw StoreError(kind, "scripted") }
}

/// Lets bytes through up to a position that the test moves.
final class Weir: Sendable {
  private let limit = Locked<Int64>(0)

  func open(to position: Int64) {
    limit.withLock { $0 = position }
    limit.wakeAll()
  }

  func pass(_ position: Int64) {
    _ = limit.wait(until: .now + .seconds(20)) { $0 > position ? true : nil }
  }
}
