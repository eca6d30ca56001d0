import Platform
import TestSupport
import Testing

@testable import BucketStore

/// One failed answer of the server and what it means.
struct FailureCase: Sendable, CustomTestStringConvertible {
  var http = 400
  var status: String
  var error: String
  var message: String
  var code: String?
  var kind: StoreError.Kind
  var writing: StoreError.Kind?

  init(
    http: Int = 400, _ status: String, _ error: String, _ message: String, code: String?,
    _ kind: StoreError.Kind, writing: StoreError.Kind? = nil
  ) {
    self.http = http
    self.status = status
    self.error = error
    self.message = message
    self.code = code
    self.kind = kind
    self.writing = writing
  }

  var testDescription: String { "\(code ?? error): \(message)" }
}

@Suite struct SupabaseErrorsTests {
  static let cases: [FailureCase] = [
    FailureCase("404", "Bucket not found", "Bucket not found", code: "NoSuchBucket", .notFound),
    FailureCase("404", "not_found", "Object not found", code: "NoSuchKey", .notFound),
    FailureCase("404", "Not found", "The resource was not found", code: "NoSuchKey", .server),
    FailureCase(
      "403", "Unauthorized", "new row violates row-level security policy", code: "AccessDenied",
      .refused),
    FailureCase("403", "Unauthorized", "Access denied", code: "AccessDenied", .refused),
    FailureCase(
      "403", "Unauthorized", "\"exp\" claim timestamp check failed", code: "AccessDenied",
      .sessionExpired),
    FailureCase("403", "Unauthorized", "Invalid Compact JWS", code: "AccessDenied", .refused),
    FailureCase(
      "403", "Unauthorized", "signature verification failed", code: "AccessDenied", .refused),
    FailureCase(
      "403", "Unauthorized", "\"alg\" (Algorithm) Header Parameter value not allowed",
      code: "AccessDenied", .refused),
    FailureCase(
      http: 403, "403", "Unauthorized", "Access denied: Invalid role", code: "AccessDenied",
      .refused),
    FailureCase(
      "409", "Duplicate", "The resource already exists", code: "KeyAlreadyExists", .exists),
    FailureCase(
      "409", "Duplicate", "The resource already exists", code: "ResourceAlreadyExists", .exists),
    FailureCase(
      "409", "Duplicate", "The resource already exists", code: "BucketAlreadyExists", .exists),
    FailureCase(
      "413", "Payload too large", "The object exceeded the maximum allowed size",
      code: "EntityTooLarge", .tooLarge),
    FailureCase(
      "415", "invalid_mime_type", "mime type X is not supported", code: "InvalidMimeType",
      .typeRefused),
    FailureCase(
      "400", "InvalidKey", "Invalid key: a#", code: "InvalidKey", .notFound, writing: .keyRefused),
    FailureCase(
      "400", "Invalid Input", "Bucket name invalid", code: "InvalidBucketName", .notFound,
      writing: .keyRefused),
    FailureCase(
      http: 416, "416", "invalid_range", "invalid range provided", code: "InvalidRange", .damaged),
    FailureCase(
      "400", "InvalidJWT", "\"exp\" claim timestamp check failed", code: "InvalidJWT", .refused),
    FailureCase("400", "InvalidSignature", "Invalid signature", code: "InvalidSignature", .refused),
    FailureCase(
      "400", "ExpiredToken", "The provided token has expired.", code: "ExpiredToken", .refused),
    FailureCase(
      "400", "InvalidParameter", "Invalid Parameter continuation token", code: "InvalidParameter",
      .unsupported),
    FailureCase(
      "400", "MissingParameter", "Missing Required Parameter X", code: "MissingParameter",
      .unsupported),
    FailureCase(
      "400", "Error", "headers must have required property 'authorization'", code: "InvalidRequest",
      .refused),
    FailureCase(
      "400", "Error", "body must have required property 'prefix'", code: "InvalidRequest",
      .unsupported),
    FailureCase(
      "404", "InvalidRequest", "The related resource does not exist", code: "InvalidRequest",
      .notFound),
    FailureCase(
      "409", "ResourceNotEmpty", "The bucket you tried to delete is not empty",
      code: "ResourceNotEmpty", .conflict),
    FailureCase(
      "409", "ResourceReferenced", "row still referenced", code: "ResourceReferenced", .conflict),
    FailureCase("423", "ResourceLocked", "The resource is locked", code: "ResourceLocked", .server),
    FailureCase(
      "503", "acquiring_lock_timeout", "acquiring lock timeout", code: "LockTimeout", .server),
    FailureCase(
      http: 544, "544", "DatabaseTimeout", "The connection to the database timed out",
      code: "DatabaseTimeout", .server),
    FailureCase(
      "503", "DatabaseReadOnly", "The database is currently in read-only mode.",
      code: "DatabaseReadOnly", .server),
    FailureCase(
      "503", "DatabaseSchemaMismatch", "broken", code: "DatabaseSchemaMismatch", .server),
    FailureCase(
      "503", "DatabaseInvalidObjectDefinition", "broken", code: "DatabaseInvalidObjectDefinition",
      .server),
    FailureCase(
      http: 500, "500", "DatabaseTransactionAborted", "x", code: "DatabaseTransactionAborted",
      .server),
    FailureCase(
      http: 500, "500", "DatabaseError", "database error, code: X", code: "DatabaseError", .server),
    FailureCase("409", "TransactionError", "x", code: "TransactionError", .server),
    FailureCase(
      http: 429, "429", "too_many_connections", "Too many connections issued to the database",
      code: "SlowDown", .throttled),
    FailureCase(http: 429, "429", "Too Many Requests", "x", code: "SlowDown", .throttled),
    FailureCase(
      http: 500, "500", "Unknown error", "S3ServiceException", code: "S3Error", .server),
    FailureCase("503", "Please slow down", "SlowDown", code: "S3Error", .throttled),
    FailureCase(
      http: 500, "500", "Internal", "Internal Server Error", code: "InternalError", .server),
    FailureCase(http: 500, "500", "Aborted", "request aborted", code: "Aborted", .server),
    FailureCase(
      http: 403, "403", "FeatureNotEnabled", "feature not enabled for the tenant",
      code: "FeatureNotEnabled", .unsupported),
    FailureCase(
      "400", "TenantNotFound", "Missing tenant config for x", code: "TenantNotFound", .refused),
    FailureCase(
      http: 404, "404", "Not Found", "Route GET:/object/info/x not found", code: "InvalidRequest",
      .unsupported),
    FailureCase(http: 413, "413", "Error", "too large", code: "EntityTooLarge", .tooLarge),
    FailureCase("418", "Teapot", "never seen before", code: "Teapot", .server),
    FailureCase("404", "Teapot", "never seen before", code: "Teapot", .server),
    FailureCase(
      "400", "Teapot", "never seen before", code: "Teapot", .server, writing: .unsupported),
  ]

  @Test(arguments: cases)
  func everyRowOfTheServersTableHasItsKind(row: FailureCase) {
    let answer = HTTPResponse.failure(row.http, row.status, row.error, row.message, code: row.code)
    #expect(SupabaseErrors.verdict(on: answer, reading: true).error.kind == row.kind)
    #expect(
      SupabaseErrors.verdict(on: answer, reading: false).error.kind == row.writing ?? row.kind)
  }

  @Test(arguments: cases.filter { $0.code != "InvalidBucketName" })
  func olderServersThatSendNoCodeAreUnderstood(row: FailureCase) {
    let answer = HTTPResponse.failure(row.http, row.status, row.error, row.message)
    #expect(SupabaseErrors.verdict(on: answer, reading: true).error.kind == row.kind)
  }

  @Test(arguments: [
    (404, "NoSuchKey", "Object not found", StoreError.Kind.notFound),
    (404, "NoSuchKey", "The resource was not found", .server),
    (404, "NoSuchBucket", "Bucket not found", .notFound),
    (403, "AccessDenied", "\"exp\" claim timestamp check failed", .sessionExpired),
    (401, "AccessDenied", "\"exp\" claim timestamp check failed", .sessionExpired),
    (403, "AccessDenied", "new row violates row-level security policy", .refused),
    (409, "KeyAlreadyExists", "x", .exists),
    (503, "LockTimeout", "x", .server),
    (429, "SlowDown", "x", .throttled),
    (400, "InvalidKey", "x", .notFound),
    (416, "InvalidRange", "x", .damaged),
  ])
  func theNewerFormatWithHonestStatusesIsUnderstood(
    http: Int, code: String, message: String, kind: StoreError.Kind
  ) {
    let quoted = message.replacing("\"", with: "\\\"")
    let answer = HTTPResponse.json(http, "{\"code\":\"\(code)\",\"message\":\"\(quoted)\"}")
    #expect(SupabaseErrors.verdict(on: answer, reading: true).error.kind == kind)
  }

  @Test func causesTellWhatToDoNext() {
    func cause(_ answer: HTTPResponse) -> SupabaseErrors.Cause? {
      SupabaseErrors.verdict(on: answer, reading: true).cause
    }
    #expect(
      cause(.failure(400, "404", "Bucket not found", "Bucket not found")) == .bucketMissing)
    #expect(cause(.failure(400, "404", "not_found", "Object not found")) == nil)
    #expect(cause(.failure(400, "404", "Not found", "The resource was not found")) == .bytesMissing)
    #expect(cause(.failure(404, "404", "Not Found", "Route GET:/x not found")) == .routeMissing)
    #expect(cause(.failure(403, "403", "FeatureNotEnabled", "x")) == .routeMissing)
  }

  @Test(arguments: [
    (401, StoreError.Kind.refused), (404, .server), (403, .server), (400, .server), (500, .server),
    (502, .server), (503, .server), (520, .server), (544, .server), (429, .throttled),
    (413, .tooLarge), (302, .server), (416, .damaged), (999, .server), (0, .server),
  ])
  func aPageOfAProxySaysNothingOfAnObject(http: Int, kind: StoreError.Kind) {
    for body in [
      "<html><body>not found</body></html>", "", "[]", "null", "{}", "\u{0}", "{\"a\":1",
    ] {
      let answer = HTTPResponse(status: http, headers: [:], body: Array(body.utf8))
      #expect(SupabaseErrors.verdict(on: answer, reading: true).error.kind == kind)
    }
  }

  @Test func theGatewaysRefusalNamesTheKey() {
    for body in ["{\"message\":\"Invalid API key\",\"hint\":\"x\"}", "Unauthorized"] {
      let answer = HTTPResponse(status: 401, headers: [:], body: Array(body.utf8))
      let error = SupabaseErrors.verdict(on: answer, reading: true).error
      #expect(error.kind == .refused)
      #expect(error.message.contains("apikey"))
    }
  }

  @Test func theServersWordsStayOnOneLine() {
    let words = String(repeating: "long\\nwinded ", count: 200)
    let answer = HTTPResponse.json(
      400, "{\"statusCode\":\"404\",\"error\":\"not_found\",\"message\":\"\(words)\"}")
    let message = SupabaseErrors.verdict(on: answer, reading: true).error.message
    #expect(message.count <= 300)
    #expect(!message.contains("\n"))
  }

  @Test func randomBodiesNeverTrap() {
    var random = SeededGenerator(seed: 11)
    let seed = Array(
      "{\"statusCode\":\"404\",\"error\":\"not_found\",\"message\":\"Object not found\"}".utf8)
    var kinds: Set<StoreError.Kind> = []
    for round in 0..<4_000 {
      var body = round % 4 == 0 ? random.awkwardBytes(upTo: 200).bytes : seed
      for _ in 0..<Int.random(in: 0...6, using: &random) where !body.isEmpty {
        body[Int.random(in: 0..<body.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      let http = Int.random(in: 200...599, using: &random)
      let answer = HTTPResponse(status: http, headers: [:], body: body)
      kinds.insert(SupabaseErrors.verdict(on: answer, reading: true).error.kind)
    }
    #expect(kinds.contains(.notFound) && kinds.contains(.server))
    let nested = [UInt8](repeating: UInt8(ascii: "["), count: 100_000)
    #expect(SupabaseErrorBody(nested) == nil)
  }
}
