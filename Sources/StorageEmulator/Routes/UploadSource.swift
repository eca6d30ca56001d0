import Platform

/// The bytes of an upload and what comes with them, whichever way they are sent.
struct UploadSource {
  var type: String
  var cacheControl: String
  var userMetadata: JSON?
  /// The size that is known before the body is read; nil for multipart and chunked bodies.
  var declaredSize: Int?
  let multipart: Multipart?

  /// Reads what stands before the bytes themselves.
  init(_ exchange: Service.Exchange) throws(Failure) {
    let header = exchange.request.headers["Content-Type"] ?? "application/octet-stream"
    guard Self.isMediaType(header) else { throw .refused(.invalidContentType) }
    guard header.lowercased().hasPrefix("multipart/form-data") else {
      multipart = nil
      type = header
      cacheControl = exchange.request.headers["Cache-Control"] ?? "no-cache"
      userMetadata = Self.metadata(exchange.request.headers["x-metadata"].flatMap(Base64.decode))
      declaredSize = exchange.body.declaredLength
      return
    }
    guard let boundary = Self.boundary(header) else { throw .refused(.noContent) }
    let multipart = Multipart(exchange.body, boundary: boundary)
    guard let part = try multipart.openFile() else { throw .refused(.noContent) }
    self.multipart = multipart
    let fields = multipart.fields
    type = fields["contentType"] ?? part.type ?? "application/octet-stream"
    cacheControl = fields["cacheControl"].map { "max-age=" + $0 } ?? "no-cache"
    userMetadata =
      Self.metadata((fields["metadata"] ?? fields["userMetadata"]).map { Array($0.utf8) })
      ?? Self.metadata(exchange.request.headers["x-metadata"].flatMap(Base64.decode))
    declaredSize = nil
  }

  /// The next bytes of the object; nil at its end.
  func next(_ body: RequestBody) throws(Failure) -> [UInt8]? {
    if let multipart { return try multipart.next() }
    return try body.next()
  }

  /// Base64 or JSON that cannot be read counts as none, without a word.
  static func metadata(_ bytes: [UInt8]?) -> JSON? {
    guard let bytes else { return nil }
    do throws(JSON.Malformed) {
      let json = try JSON(reading: bytes)
      return json.isObject ? json : nil
    } catch {
      return nil
    }
  }

  private static func isMediaType(_ text: String) -> Bool {
    let type = text.split(separator: ";", omittingEmptySubsequences: false)[0]
    let parts = type.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count == 2
      && parts.allSatisfy { part in
        !part.isEmpty
          && part.utf8.allSatisfy { byte in
            (byte > 32 && byte < 127) && !"()<>@,\\\"[]?=".utf8.contains(byte)
          }
      }
  }

  private static func boundary(_ header: String) -> String? {
    for parameter in header.split(separator: ";").dropFirst() {
      let parts = parameter.split(separator: "=", maxSplits: 1)
      let name = parts[0].drop { $0 == " " }
      guard parts.count == 2, name.lowercased() == "boundary" else { continue }
      return String(parts[1].filter { $0 != "\"" })
    }
    return nil
  }
}
