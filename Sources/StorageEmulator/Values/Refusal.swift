/// One of the server's refusals: the envelope of four strings and the HTTP status it comes with.
///
/// `statusCode` is the real status; HTTP says 400 for nearly all of them (the server's
/// src/internal/errors and src/http/error-handler.ts).
struct Refusal: Sendable {
  var http: Int
  var statusCode: Int
  var error: String
  var message: String
  var code: String

  /// A refusal with HTTP status 400 unless another one is named.
  init(_ code: String, _ statusCode: Int, _ error: String, _ message: String, http: Int = 400) {
    self.http = http
    self.statusCode = statusCode
    self.error = error
    self.message = message
    self.code = code
  }

  /// - Parameter hidesCode: what servers before mid 2026 do with `code` on 4xx answers.
  func response(hidesCode: Bool) -> Response {
    var members: [JSON.Member] = [
      JSON.Member("statusCode", .string(String(statusCode))),
      JSON.Member("error", .string(error)),
      JSON.Member("message", .string(message)),
    ]
    if !hidesCode || http >= 500 { members.append(JSON.Member("code", .string(code))) }
    return Response(status: http, json: .object(members))
  }
}

extension Refusal {
  static let noSuchBucket = Refusal("NoSuchBucket", 404, "Bucket not found", "Bucket not found")
  static let noSuchKey = Refusal("NoSuchKey", 404, "not_found", "Object not found")
  static let blobMissing = Refusal("NoSuchKey", 404, "Not found", "The resource was not found")
  static let rowLevelSecurity = denied("new row violates row-level security policy")
  static let alreadyExists = Refusal(
    "KeyAlreadyExists", 409, "Duplicate", "The resource already exists")
  static let bucketExists = Refusal(
    "BucketAlreadyExists", 409, "Duplicate", "The resource already exists")
  static let bucketNotEmpty = Refusal(
    "ResourceNotEmpty", 409, "ResourceNotEmpty", "The bucket you tried to delete is not empty")
  static let tooLarge = Refusal(
    "EntityTooLarge", 413, "Payload too large", "The object exceeded the maximum allowed size")
  static let bodyTooLarge = Refusal(
    "EntityTooLarge", 413, "Payload too large", "Request body is too large", http: 413)
  static let noContent = Refusal(
    "InvalidRequest", 400, "InvalidRequest", "No content provided")
  static let invalidRange = Refusal(
    "InvalidRange", 416, "invalid_range", "invalid range provided", http: 416)
  static let internalError = Refusal(
    "InternalError", 500, "Internal", "Internal Server Error", http: 500)
  static let invalidContentType = Refusal(
    "InvalidMimeType", 415, "invalid_mime_type", "Invalid Content-Type header")
  static let wrongRole = Refusal(
    "AccessDenied", 403, "Unauthorized", "Access denied: Invalid role", http: 403)

  static func denied(_ message: String) -> Refusal {
    Refusal("AccessDenied", 403, "Unauthorized", message)
  }

  static func invalidKey(_ key: String) -> Refusal {
    Refusal("InvalidKey", 400, "InvalidKey", "Invalid key: \(key)")
  }

  static let invalidBucketName = Refusal(
    "InvalidBucketName", 400, "Invalid Input", "Bucket name invalid")

  static func mimeType(_ type: String) -> Refusal {
    Refusal("InvalidMimeType", 415, "invalid_mime_type", "mime type \(type) is not supported")
  }

  /// A request whose shape the route's schema refuses.
  static func schema(_ message: String) -> Refusal {
    Refusal("InvalidRequest", 400, "Error", message)
  }

  static func parameter(_ name: String) -> Refusal {
    Refusal("InvalidParameter", 400, "InvalidParameter", "Invalid Parameter \(name)")
  }

  static func signature(_ message: String) -> Refusal {
    Refusal("InvalidSignature", 400, "InvalidSignature", message)
  }

  static func signedToken(_ message: String) -> Refusal {
    Refusal("InvalidJWT", 400, "InvalidJWT", message)
  }

  static func noRoute(_ method: String, _ path: String) -> Refusal {
    Refusal(
      "InvalidRequest", 404, "Not Found", "Route \(method):\(path) not found", http: 404)
  }

  /// The troubles of a server under load, by their code, for faults.
  static let troubles: [String: Refusal] = [
    "SlowDown": Refusal(
      "SlowDown", 429, "too_many_connections",
      "Too many connections issued to the database", http: 429),
    "DatabaseTimeout": Refusal(
      "DatabaseTimeout", 544, "DatabaseTimeout",
      "The connection to the database timed out", http: 544),
    "DatabaseReadOnly": Refusal(
      "DatabaseReadOnly", 503, "DatabaseReadOnly",
      "The database is currently in read-only mode. Please try again later."),
    "LockTimeout": Refusal(
      "LockTimeout", 503, "acquiring_lock_timeout", "acquiring lock timeout"),
    "ResourceLocked": Refusal(
      "ResourceLocked", 423, "ResourceLocked", "The resource is locked"),
    "InternalError": internalError,
    "S3Error": Refusal("S3Error", 500, "Unknown error", "S3ServiceException", http: 500),
    "S3SlowDown": Refusal("S3Error", 503, "Please reduce your request rate.", "SlowDown"),
    "BlobMissing": blobMissing,
    "RowLevelSecurity": rowLevelSecurity,
    "NoSuchKey": noSuchKey,
    "NoSuchBucket": noSuchBucket,
    "ExpiredToken": denied(Token.Fault.expired.rawValue),
  ]
}
