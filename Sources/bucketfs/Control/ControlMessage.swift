import FoundationEssentials
import Platform

/// What a verb asks of a mount: one line of JSON.
struct ControlRequest: Codable, Equatable, Sendable {
  let verb: Verb
  /// A path below the mount point, percent-encoded since it may hold any bytes; nil for the mount.
  let path: String?
  /// `wait`: how many seconds at most; nil is for ever.
  var timeout: Double?
  /// `queue`: how many records at most; nil is all.
  var limit: Int?
  /// `clear`: whether pending files go too.
  var pending: Bool?

  init(_ verb: Verb, path: ByteString? = nil) {
    self.verb = verb
    self.path = path.map(Percent.encodePath)
  }

  /// The path's bytes; nil when it is not well encoded.
  var pathBytes: ByteString? { Percent.decode((path ?? "").utf8) }
}

/// What the mount answers: one line of JSON.
enum ControlReply: Codable, Equatable, Sendable {
  case done
  case status(StatusReport)
  case copy(CopyReport)
  case object(ObjectReport)
  case hidden([HiddenKeyReport])
  case queue(QueueAnswer)
  case waited(WaitReport)
  case changed(ChangeReport)
  case cleared(ClearReport)
  case refused(code: ExitCode, sentence: String, hint: String?)

  init(_ complaint: Complaint) {
    self = .refused(code: complaint.code, sentence: complaint.sentence, hint: complaint.hint)
  }
}

/// JSON on one line, with keys in order.
enum JSON {
  /// The bytes of a value.
  ///
  /// Reports hold text and whole numbers alone, which always can be encoded.
  static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return Array(try encoder.encode(value))
    } catch {
      preconditionFailure("a report that is no JSON: \(error)")
    }
  }

  /// The value as a line for standard output.
  static func line(_ value: some Encodable) -> String {
    String(decoding: encode(value), as: UTF8.self) + "\n"
  }

  /// The value of a line; nil when it is none of this kind.
  static func decode<Value: Decodable>(_ type: Value.Type, from line: [UInt8]) -> Value? {
    do {
      return try JSONDecoder().decode(type, from: Data(line))
    } catch {
      // What is wrong with a line that is not ours does not matter to anybody.
      return nil
    }
  }
}
