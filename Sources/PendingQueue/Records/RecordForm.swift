import BucketStore
import FoundationEssentials
import Platform

/// A record as its JSON file spells it. docs/durability.md describes each field.
///
/// Moments are integers of nanoseconds since 1970, so that they are exact and quick to read.
/// Names are text; where one is not UTF-8 the text is for people alone, and a second field holds
/// the bytes in hexadecimal.
struct RecordForm: Codable {
  /// The format that this program writes; it refuses, and keeps, what is newer.
  static let version = 1

  var format: Int
  var id: String
  var bucket: String
  var bucketHex: String?
  var objectPath: String
  var objectPathHex: String?
  var operation: String
  var createdNs: Int64
  var placedNs: UInt64
  var contentType: String
  var size: Int64
  var sha256: String?
  var modifiedNs: Int64
  var mode: UInt32
  var attributes: [String: String]?
  var baseExists: Bool
  var baseVersion: String?
  var baseTag: String?
  var state: String
  var synced: Bool?
  var kind: String?
  var reason: String?
  var retryable: Bool?
  var attempts: Int64
  var nextTryNs: Int64?
  var owner: String
  var upload: String?
  var tried: [Tried]?
  var conflictOf: String?
  var conflictOfHex: String?
  var left: Left?

  enum CodingKeys: String, CodingKey {
    case format
    case id
    case bucket
    case bucketHex = "bucket_hex"
    case objectPath = "object_path"
    case objectPathHex = "object_path_hex"
    case operation
    case createdNs = "created_ns"
    case placedNs = "placed_ns"
    case contentType = "content_type"
    case size
    case sha256
    case modifiedNs = "modified_ns"
    case mode
    case attributes
    case baseExists = "base_exists"
    case baseVersion = "base_version"
    case baseTag = "base_tag"
    case state
    case synced
    case kind
    case reason
    case retryable
    case attempts
    case nextTryNs = "next_try_ns"
    case owner
    case upload
    case tried
    case conflictOf = "conflict_of"
    case conflictOfHex = "conflict_of_hex"
    case left
  }

  struct Tried: Codable {
    var size: Int64
    var sha256: String
    var md5: String
  }

  struct Left: Codable {
    var id: String
    var bucketHex: String
    var objectPathHex: String
    var tried: [Tried]

    enum CodingKeys: String, CodingKey {
      case id
      case tried
      case bucketHex = "bucket_hex"
      case objectPathHex = "object_path_hex"
    }
  }

  /// What every format has.
  struct Version: Decodable {
    var format: Int
  }
}

/// Why a record's file gives no record.
enum RecordError: Error, Equatable {
  /// A later program wrote it.
  case newerFormat(Int)
  /// It is not a record.
  case unreadable(String)
}

extension PendingRecord {
  /// The bytes of its file.
  func encoded() throws(Errno) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      return Array(try encoder.encode(form)) + [UInt8(ascii: "\n")]
    } catch {
      Log.error("record \(id) cannot be written as JSON: \(error)")
      throw .invalid
    }
  }

  /// Reads the bytes of a record's file.
  init(decoding bytes: [UInt8], id: PendingID) throws(RecordError) {
    let decoder = JSONDecoder()
    let data = Data(bytes)
    let form: RecordForm
    do {
      form = try decoder.decode(RecordForm.self, from: data)
    } catch let failure {
      let version: RecordForm.Version
      do {
        version = try decoder.decode(RecordForm.Version.self, from: data)
      } catch {
        throw .unreadable("\(failure)")
      }
      if version.format > RecordForm.version { throw .newerFormat(version.format) }
      throw .unreadable("\(failure)")
    }
    guard form.format <= RecordForm.version else { throw .newerFormat(form.format) }
    guard form.id == id.description else { throw .unreadable("it names itself \(form.id)") }
    try self.init(form, id: id)
  }

  private init(_ form: RecordForm, id: PendingID) throws(RecordError) {
    guard let operation = Operation(rawValue: form.operation),
      let state = PendingState(rawValue: form.state),
      let bucket = Self.name(form.bucket, form.bucketHex),
      let key = Self.name(form.objectPath, form.objectPathHex), form.size >= 0
    else { throw .unreadable("a field holds what it may not") }
    self.init(
      id: id, object: ObjectName(bucket: bucket, key: key),
      created: Timestamp(nanoseconds: form.createdNs), placed: form.placedNs,
      contentType: form.contentType, size: form.size,
      modified: Timestamp(nanoseconds: form.modifiedNs), mode: form.mode,
      base: form.baseExists
        ? .object(version: form.baseVersion, tag: form.baseTag) : .absent,
      state: state, owner: form.owner)
    self.operation = operation
    sha256 = form.sha256
    for (name, value) in form.attributes ?? [:] {
      guard let name = Hexadecimal.decode(name), let value = Hexadecimal.decode(value) else {
        throw .unreadable("an extended attribute is not hexadecimal")
      }
      attributes[ByteString(name)] = value
    }
    isSynced = form.synced ?? false
    if let kind = form.kind {
      failure = PendingFailure(
        kind: kind, reason: form.reason ?? "", isRetryable: form.retryable ?? false)
    }
    attempts = form.attempts
    nextTry = form.nextTryNs.map { Timestamp(nanoseconds: $0) }
    upload = form.upload.map { UploadToken($0) }
    if let tried = form.tried {
      self.tried = tried.map { Fingerprint(size: $0.size, sha256: $0.sha256, md5: $0.md5) }
    }
    if let text = form.conflictOf {
      guard let key = Self.name(text, form.conflictOfHex) else {
        throw .unreadable("the name it was in conflict over is none")
      }
      conflictOf = ObjectName(bucket: bucket, key: key)
    }
    if let left = form.left {
      guard let id = PendingID(left.id), let bucket = Hexadecimal.decode(left.bucketHex),
        let key = Hexadecimal.decode(left.objectPathHex)
      else { throw .unreadable("the name it left is none") }
      self.left = LeftName(
        id: id, object: ObjectName(bucket: ByteString(bucket), key: ByteString(key)),
        tried: left.tried.map { Fingerprint(size: $0.size, sha256: $0.sha256, md5: $0.md5) })
    }
  }

  private var form: RecordForm {
    var form = RecordForm(
      format: RecordForm.version, id: id.description, bucket: object.bucket.description,
      objectPath: object.key.description, operation: operation.rawValue,
      createdNs: created.nanoseconds, placedNs: placed, contentType: contentType, size: size,
      sha256: sha256, modifiedNs: modified.nanoseconds, mode: mode, baseExists: base != .absent,
      state: state.rawValue, attempts: attempts, owner: owner)
    form.bucketHex = Self.hexadecimal(object.bucket)
    form.objectPathHex = Self.hexadecimal(object.key)
    if case .object(let version, let tag) = base {
      form.baseVersion = version
      form.baseTag = tag
    }
    if !attributes.isEmpty {
      form.attributes = [:]
      for (name, value) in attributes {
        form.attributes?[Hexadecimal.encode(name.bytes)] = Hexadecimal.encode(value)
      }
    }
    form.synced = isSynced ? true : nil
    form.kind = failure?.kind
    form.reason = failure?.reason
    form.retryable = failure?.isRetryable
    form.nextTryNs = nextTry?.nanoseconds
    form.upload = upload?.text
    if !tried.isEmpty {
      form.tried = tried.map { RecordForm.Tried(size: $0.size, sha256: $0.sha256, md5: $0.md5) }
    }
    form.conflictOf = conflictOf?.key.description
    form.conflictOfHex = conflictOf.flatMap { Self.hexadecimal($0.key) }
    form.left = left.map { left in
      RecordForm.Left(
        id: left.id.description, bucketHex: Hexadecimal.encode(left.object.bucket.bytes),
        objectPathHex: Hexadecimal.encode(left.object.key.bytes),
        tried: left.tried.map { RecordForm.Tried(size: $0.size, sha256: $0.sha256, md5: $0.md5) })
    }
    return form
  }

  /// The bytes in hexadecimal where the text for people does not give them back.
  private static func hexadecimal(_ name: ByteString) -> String? {
    name.string == name.description ? nil : Hexadecimal.encode(name.bytes)
  }

  private static func name(_ text: String, _ hexadecimal: String?) -> ByteString? {
    guard let hexadecimal else { return ByteString(text) }
    return Hexadecimal.decode(hexadecimal).map { ByteString($0) }
  }
}
