import BucketStore
import FoundationEssentials
import Platform

/// The conflicts of the last month, in memory and in the file `conflicts.json` of the queue's
/// folder, so that a person who looks a day later still learns of them.
///
/// Nothing depends on it: a file that is lost or cannot be read costs the news alone.
final class ConflictLog: Sendable {
  static let name = "conflicts.json"
  private static let longest = 100
  private static let memory = Span.seconds(30 * 86_400)

  private let directory: QueueDirectory
  private let state: Locked<State>

  private struct State {
    var copies: [ConflictCopy]
    /// Whether the file lacks something.
    var isBehind = false
    /// Whether a thread writes the file: one at a time, since its replacement has one name.
    var isWriting = false
  }

  init(_ directory: QueueDirectory) {
    self.directory = directory
    state = Locked(State(copies: Self.read(directory)))
  }

  /// The newest last.
  func copies(of owner: String, since now: Timestamp) -> [ConflictCopy] {
    state.withLock { state in
      state.copies.filter { $0.owner == owner && now.since($0.at) < Self.memory }
    }
  }

  /// Writes the news down; where another thread is at it, that one does.
  func add(_ copy: ConflictCopy) {
    let isMine = state.withLock { state -> Bool in
      state.copies.append(copy)
      state.copies.removeFirst(max(0, state.copies.count - Self.longest))
      state.isBehind = true
      defer { state.isWriting = true }
      return !state.isWriting
    }
    guard isMine else { return }
    while let all = next() { write(all) }
  }

  /// What is to be written; nil when nothing is, and another thread may write.
  private func next() -> [ConflictCopy]? {
    state.withLock { state in
      state.isWriting = state.isBehind
      guard state.isBehind else { return nil }
      state.isBehind = false
      return state.copies
    }
  }

  private func write(_ all: [ConflictCopy]) {
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      let form = Form(format: Form.version, conflicts: all.map(Form.Entry.init))
      let bytes = Array(try encoder.encode(form)) + [UInt8(ascii: "\n")]
      try directory.replace(Self.name, with: bytes, durable: false)
    } catch {
      Log.warning("\(directory.path)/\(Self.name) cannot be written: \(error)")
    }
  }

  private static func read(_ directory: QueueDirectory) -> [ConflictCopy] {
    do {
      let form = try JSONDecoder().decode(
        Form.self, from: Data(try directory.contents(Self.name)))
      return form.conflicts.compactMap(\.copy)
    } catch let error as Errno where error == .noEntry {
      return []
    } catch {
      Log.warning("\(directory.path)/\(Self.name) cannot be read: \(error)")
      return []
    }
  }

  private struct Form: Codable {
    static let version = 1

    var format: Int
    var conflicts: [Entry]

    /// Names in hexadecimal, since any bytes may be in them, and as text for people.
    struct Entry: Codable {
      var atNs: Int64
      var bucketHex: String
      var copyPath: String
      var copyHex: String
      var objectPath: String
      var objectPathHex: String
      var owner: String

      enum CodingKeys: String, CodingKey {
        case owner
        case atNs = "at_ns"
        case bucketHex = "bucket_hex"
        case copyPath = "copy"
        case copyHex = "copy_hex"
        case objectPath = "object_path"
        case objectPathHex = "object_path_hex"
      }

      init(_ copy: ConflictCopy) {
        atNs = copy.at.nanoseconds
        bucketHex = Hexadecimal.encode(copy.object.bucket.bytes)
        copyPath = copy.copy.key.description
        copyHex = Hexadecimal.encode(copy.copy.key.bytes)
        objectPath = copy.object.key.description
        objectPathHex = Hexadecimal.encode(copy.object.key.bytes)
        owner = copy.owner
      }

      /// Nil where a field holds what it may not.
      var copy: ConflictCopy? {
        guard let bucket = Hexadecimal.decode(bucketHex).map({ ByteString($0) }),
          let key = Hexadecimal.decode(objectPathHex), let copy = Hexadecimal.decode(copyHex)
        else { return nil }
        return ConflictCopy(
          at: Timestamp(nanoseconds: atNs),
          object: ObjectName(bucket: bucket, key: ByteString(key)),
          copy: ObjectName(bucket: bucket, key: ByteString(copy)), owner: owner)
      }
    }
  }
}
