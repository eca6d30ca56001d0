import Platform

/// What a failed answer of the server means, by one table.
///
/// The HTTP status is 400 for nearly every failure; the truth is in the body's `code`, `error` and
/// `statusCode`, of which older servers send only the last two. An answer that is not the
/// store's own JSON (a proxy's page) says nothing about an object, whatever its status.
enum SupabaseErrors {
  /// Why a call failed where its `kind` alone does not tell what to do next.
  enum Cause: Sendable {
    /// The bucket is missing, not a key in it.
    case bucketMissing
    /// The object's row is there and its bytes are not: a stale row, or an overwrite under way.
    case bytesMissing
    /// The server is too old for this call, or has it switched off.
    case routeMissing
    /// The server knows no such upload, or no longer.
    case uploadMissing
    /// The upload is complete.
    case uploadFinished
    /// The server has another part of the upload than the one to follow upon.
    case offsetConflict
  }

  struct Verdict: Sendable, Equatable {
    var error: StoreError
    var cause: Cause?
  }

  /// - Parameter reading: a name that the store would refuse to write cannot exist, so a reader
  ///   is told `notFound` and a writer `keyRefused`.
  static func verdict(on response: HTTPResponse, reading: Bool) -> Verdict {
    guard let body = SupabaseErrorBody(response.body) else {
      return Verdict(error: foreign(response.status))
    }
    let facts = Facts(http: response.status, body: body)
    let row = table.first { $0.matches(facts) }
    var kind = row?.kind ?? kind(ofStatus: facts.status)
    if reading, kind == .keyRefused { kind = .notFound }
    // Nothing is wrong with a read: whatever refuses it without a reason is at fault itself.
    if reading, row == nil, kind == .unsupported { kind = .server }
    let words = facts.words
    return Verdict(
      error: StoreError(kind, row?.sentence.map { "\($0) (\(words))" } ?? words),
      cause: row?.cause)
  }

  /// A failed answer, as far as it matters here.
  private struct Facts {
    var http: Int
    /// The status that is meant: the body's, else HTTP's.
    var status: Int
    var names: [String]
    var message: String

    init(http: Int, body: SupabaseErrorBody) {
      self.http = http
      status = body.status ?? http
      names = [body.code, body.error].compactMap { $0 }
      message = body.message ?? ""
    }

    /// The server's own words, made fit for one line.
    var words: String {
      let name = names.first.map { " (\($0))" } ?? ""
      return SupabaseErrors.line("the store says: \(message.isEmpty ? "nothing" : message)\(name)")
    }
  }

  /// One row: every condition that is given must hold.
  private struct Row: Sendable {
    /// `code` or `error` is one of these.
    var names: [String] = []
    var http: Int?
    var status: Int?
    /// Part of the message.
    var says: String?
    var kind: StoreError.Kind
    var cause: Cause?
    var sentence: String?

    func matches(_ facts: Facts) -> Bool {
      (names.isEmpty || facts.names.contains { names.contains($0) })
        && (http.map { $0 == facts.http } ?? true)
        && (status.map { $0 == facts.status } ?? true)
        && (says.map { facts.message.contains($0) } ?? true)
    }
  }

  private static let wrongKey =
    "the server refused the apikey: check the project's key"
  private static let wrongCredentials =
    "the credentials are not this project's: check the key, or sign in again"

  /// The first row that matches counts.
  private static let table: [Row] = [
    // Unknown routes are a real 404, and never a missing object.
    Row(http: 404, says: "Route ", kind: .unsupported, cause: .routeMissing),
    Row(names: ["FeatureNotEnabled"], kind: .unsupported, cause: .routeMissing),

    // Tokens. The text of an expired one is the same for a signed URL, which no refresh mends.
    Row(names: ["InvalidJWT", "InvalidSignature", "ExpiredToken"], kind: .refused),
    Row(http: 400, says: "\"exp\" claim", kind: .sessionExpired),
    Row(http: 401, says: "\"exp\" claim", kind: .sessionExpired),
    Row(http: 403, says: "\"exp\" claim", kind: .sessionExpired),
    Row(http: 401, says: "JWT expired", kind: .sessionExpired),
    Row(http: 401, kind: .refused, sentence: wrongKey),
    Row(status: 403, says: "Invalid Compact JWS", kind: .refused, sentence: wrongCredentials),
    Row(status: 403, says: "signature verification", kind: .refused, sentence: wrongCredentials),
    Row(status: 403, says: "(Algorithm) Header", kind: .refused, sentence: wrongCredentials),
    Row(
      says: "must have required property 'authorization'", kind: .refused,
      sentence: "no credentials were sent: a sign-in or a project key is needed"),

    // What is not there.
    Row(names: ["NoSuchBucket", "Bucket not found"], kind: .notFound, cause: .bucketMissing),
    Row(names: ["Not found"], status: 404, kind: .server, cause: .bytesMissing),
    Row(
      names: ["NoSuchKey"], says: "The resource was not found", kind: .server,
      cause: .bytesMissing),
    Row(names: ["NoSuchKey", "not_found"], kind: .notFound),
    Row(
      status: 404, says: "related resource does not exist", kind: .notFound,
      cause: .bucketMissing),

    // Policy, limits and names.
    Row(names: ["AccessDenied", "Unauthorized"], kind: .refused),
    Row(names: ["SignatureDoesNotMatch", "InvalidAccessKeyId"], kind: .refused),
    Row(
      names: ["KeyAlreadyExists", "ResourceAlreadyExists", "BucketAlreadyExists", "Duplicate"],
      kind: .exists),
    Row(names: ["EntityTooLarge", "Payload too large"], kind: .tooLarge),
    Row(names: ["InvalidMimeType", "invalid_mime_type"], kind: .typeRefused),
    Row(names: ["InvalidKey"], kind: .keyRefused),
    Row(names: ["InvalidBucketName"], kind: .keyRefused, cause: .bucketMissing),
    Row(
      names: ["Invalid Input"], says: "Bucket name", kind: .keyRefused, cause: .bucketMissing),
    Row(
      names: ["InvalidRange", "invalid_range"], kind: .damaged,
      sentence: "the object ends before the part that was asked for"),
    Row(names: ["ResourceNotEmpty", "ResourceReferenced"], kind: .conflict),

    // Come back later.
    Row(names: ["SlowDown", "too_many_connections", "Too Many Requests"], kind: .throttled),
    Row(
      names: [
        "ResourceLocked", "LockTimeout", "acquiring_lock_timeout", "DatabaseTimeout",
        "DatabaseReadOnly", "DatabaseSchemaMismatch", "DatabaseInvalidObjectDefinition",
        "DatabaseTransactionAborted", "DatabaseError", "TransactionError", "InternalError",
        "Internal", "Aborted", "AbortedTerminate",
      ], kind: .server),
    Row(status: 503, says: "SlowDown", kind: .throttled),
    Row(names: ["S3Error"], says: "SlowDown", kind: .throttled),
    Row(names: ["S3Error"], kind: .server),

    // The rest of what the server refuses for good.
    Row(
      names: ["TenantNotFound"], kind: .refused,
      sentence: "the server knows no such project: check the address"),
    Row(
      names: ["InvalidParameter", "MissingParameter", "InvalidRequest", "NotSupported"],
      status: 400, kind: .unsupported),
    Row(status: 400, says: "must have required property", kind: .unsupported),
  ]

  /// What the status that is meant says, where no row knows the error's name.
  private static func kind(ofStatus status: Int) -> StoreError.Kind {
    switch status {
    case 400: .unsupported
    case 401, 403: .refused
    case 408, 423: .server
    case 409: .conflict
    case 413: .tooLarge
    case 415: .typeRefused
    case 416: .damaged
    case 429: .throttled
    default: .server
    }
  }

  /// An answer whose body is not the store's own: a gateway, a proxy, a captive portal.
  static func foreign(_ status: Int) -> StoreError {
    switch status {
    case 401: StoreError(.refused, wrongKey)
    case 413: StoreError(.tooLarge, "a proxy before the store refused the size (HTTP 413)")
    case 416:
      StoreError(.damaged, "the object ends before the part that was asked for (HTTP 416)")
    case 429: StoreError(.throttled, "the store asks to come back later (HTTP 429)")
    case 300..<400:
      StoreError(.server, "the answer leads elsewhere (HTTP \(status)): not the store's own")
    default: StoreError(.server, "an answer that is not the store's own (HTTP \(status))")
    }
  }

  /// Text from outside, cut to a line's length and freed of control characters.
  static func line(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.prefix(300).map { $0.value < 32 || $0.value == 127 ? " " : $0 }))
  }
}
