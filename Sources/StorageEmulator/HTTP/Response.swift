/// What a route answers, before any fault changes it.
struct Response: Sendable {
  enum Body: Sendable {
    case bytes([UInt8])
    case blob(Blob, Range<Int>)

    var count: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .blob(_, let range): range.count
      }
    }
  }

  var status: Int
  var headers: Headers
  var body: Body
  /// False for an answer to HEAD and for a bare 304: the headers speak of a body that is not sent.
  var sendsBody = true
  /// The length that the headers claim when it is not the body's own, as after HEAD.
  var claimedLength: Int?

  init(status: Int = 200, headers: Headers = Headers(), body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  init(status: Int = 200, json: JSON) {
    self.init(
      status: status,
      headers: Headers([(name: "Content-Type", value: "application/json; charset=utf-8")]),
      body: .bytes(json.encoded))
  }

  /// The body from an offset of its own, at most `limit` bytes of it.
  func piece(at offset: Int, limit: Int) throws(Failure) -> [UInt8] {
    let count = min(limit, body.count - offset)
    switch body {
    case .bytes(let bytes): return Array(bytes[offset..<(offset + count)])
    case .blob(let blob, let range): return try blob.read(range.lowerBound + offset, count)
    }
  }

  static func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 201: "Created"
    case 204: "No Content"
    case 206: "Partial Content"
    case 304: "Not Modified"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 409: "Conflict"
    case 410: "Gone"
    case 412: "Precondition Failed"
    case 413: "Payload Too Large"
    case 415: "Unsupported Media Type"
    case 416: "Range Not Satisfiable"
    case 422: "Unprocessable Entity"
    case 429: "Too Many Requests"
    case 500: "Internal Server Error"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    default: "Status"
    }
  }
}
