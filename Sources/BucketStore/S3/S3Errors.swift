import Platform

/// What a failed answer of an S3 server means, by one table.
///
/// The body is `<Error><Code/><Message/></Error>`; a failed HEAD has none. An answer that is not
/// the store's own (a proxy's page) says nothing about an object, whatever its status.
enum S3Errors {
  /// The facts that the body of a failed answer tells.
  struct Body: Equatable {
    var code = ""
    var message = ""
    /// The region in which a bucket is, where the answer names it.
    var region: String?
    /// Whether the root of the document is an error.
    var isError = false

    /// Nil when the bytes are no XML.
    init?(_ bytes: [UInt8]) {
      guard !bytes.isEmpty else { return nil }
      var found = Body()
      let isRead = XMLReader.read(bytes) { path, text in
        let value = String(decoding: text, as: UTF8.self)
        switch path {
        case ["Error", "Code"]: found.code = value
        case ["Error", "Message"]: found.message = value
        case ["Error", "Region"]: found.region = value
        case ["Error"]: found.isError = true
        default: break
        }
      }
      guard isRead else { return nil }
      self = found
    }

    private init() {}
  }

  /// - Parameter reading: a name that the store would refuse to write cannot exist, so a reader is
  ///   told `notFound` and a writer `keyRefused`.
  static func error(on response: HTTPResponse, reading: Bool) -> StoreError {
    guard let body = Body(response.body), body.isError else {
      return foreign(response.status, isEmpty: response.body.isEmpty)
    }
    return error(body, status: response.status, reading: reading)
  }

  static func error(_ body: Body, status: Int, reading: Bool) -> StoreError {
    let row = table.first { $0.codes.contains(body.code) }
    var kind = row?.kind ?? kind(ofStatus: status)
    if reading, kind == .keyRefused { kind = .notFound }
    let message = body.message.isEmpty ? "nothing" : body.message
    let words = SupabaseErrors.line("the store says: \(message) (\(body.code))")
    return StoreError(kind, row?.sentence.map { "\($0) (\(words))" } ?? words)
  }

  private struct Row: Sendable {
    var codes: Set<String>
    var kind: StoreError.Kind
    var sentence: String?
  }

  private static let table: [Row] = [
    Row(codes: ["NoSuchKey", "NoSuchBucket", "NoSuchUpload", "NoSuchVersion"], kind: .notFound),
    Row(
      codes: [
        "InvalidBucketName", "InvalidObjectName", "KeyTooLongError", "InvalidURI", "InvalidKey",
      ],
      kind: .keyRefused),
    Row(codes: ["PreconditionFailed"], kind: .conflict),
    Row(codes: ["BucketAlreadyExists", "BucketAlreadyOwnedByYou"], kind: .exists),
    Row(
      codes: ["EntityTooLarge", "MaxMessageLengthExceeded", "MetadataTooLarge"], kind: .tooLarge),
    Row(
      codes: ["InvalidRange"], kind: .damaged,
      sentence: "the object ends before the part that was asked for"),
    Row(
      codes: ["BadDigest", "IncompleteBody", "InvalidDigest", "XAmzContentSHA256Mismatch"],
      kind: .damaged, sentence: "the bytes did not arrive as they were sent"),
    Row(codes: ["InvalidPart", "InvalidPartOrder", "EntityTooSmall"], kind: .damaged),

    // Credentials.
    Row(
      codes: ["InvalidAccessKeyId"], kind: .refused,
      sentence: "the store does not know the access key"),
    Row(
      codes: ["SignatureDoesNotMatch"], kind: .refused,
      sentence: "the secret key is not the access key's, or a proxy changes requests"),
    Row(
      codes: ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"], kind: .sessionExpired,
      sentence: "the session token has expired"),
    Row(
      codes: ["RequestTimeTooSkewed", "RequestExpired"], kind: .refused,
      sentence: "this device's clock is wrong"),
    Row(
      codes: [
        "AccessDenied", "AllAccessDisabled", "AccountProblem", "UnauthorizedAccess", "NotSignedUp",
        "InvalidObjectState", "InvalidPayer", "AuthorizationHeaderMalformed",
      ], kind: .refused),
    Row(
      codes: ["PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException"],
      kind: .refused, sentence: "the bucket is in another region: set the option region"),

    // Come back later.
    Row(
      codes: [
        "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests",
        "BandwidthLimitExceeded", "ServiceUnavailable", "Busy",
      ], kind: .throttled),
    // Another conditional request for the key is under way, be it an earlier try from here: that
    // says nothing of what will be there.
    Row(codes: ["ConditionalRequestConflict"], kind: .server),
    Row(
      codes: ["InternalError", "OperationAborted", "RequestTimeout", "ServerSideEncryptionError"],
      kind: .server),
    Row(codes: ["QuotaExceeded", "XMinioStorageFull", "InsufficientStorage"], kind: .tooLarge),

    // Calls and forms that the server has not.
    Row(
      codes: ["NotImplemented", "MethodNotAllowed", "XNotImplemented", "InvalidArgument"],
      kind: .unsupported),
  ]

  /// What the status alone says, where no row knows the code.
  private static func kind(ofStatus status: Int) -> StoreError.Kind {
    switch status {
    case 400, 405, 411, 501: .unsupported
    case 401, 403: .refused
    case 404: .notFound
    case 412: .conflict
    case 413: .tooLarge
    case 416: .damaged
    case 429, 503: .throttled
    default: .server
    }
  }

  /// An answer whose body is not the store's own: a gateway, a proxy, a captive portal; or none.
  private static func foreign(_ status: Int, isEmpty: Bool) -> StoreError {
    let words = isEmpty ? "no words" : "an answer that is not the store's own"
    return switch status {
    case 412: StoreError(.conflict, "another writer was first (HTTP 412)")
    case 401, 403: StoreError(.refused, "the store refuses it (HTTP \(status), \(words))")
    case 413: StoreError(.tooLarge, "a proxy before the store refused the size (HTTP 413)")
    case 416: StoreError(.damaged, "the object ends before the part that was asked for (HTTP 416)")
    case 429, 503: StoreError(.throttled, "the store asks to come back later (HTTP \(status))")
    case 501: StoreError(.unsupported, "the store has no such call (HTTP 501)")
    case 300..<400:
      StoreError(.server, "the answer leads elsewhere (HTTP \(status)): not the store's own")
    default: StoreError(.server, "\(words) (HTTP \(status))")
    }
  }
}
