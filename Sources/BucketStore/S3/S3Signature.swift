package import Platform

/// Signs requests by AWS Signature Version 4, in the form that S3 asks for.
///
/// Pure: the same request, credentials and moment give the same text. Follows AWS's "Signature
/// Version 4 signing process"; for S3 the path is signed as it is sent, encoded once and with its
/// dot segments and double slashes kept.
package struct S3Signature: Sendable {
  /// What signs.
  package let credentials: S3Credentials
  /// The region that the signature is good for.
  package let region: String
  /// `s3`; the published examples have others.
  package let service: String

  package init(_ credentials: S3Credentials, region: String, service: String = "s3") {
    self.credentials = credentials
    self.region = region
    self.service = service
  }

  /// What a body whose digest is not told is signed with.
  package static let unsigned = "UNSIGNED-PAYLOAD"

  /// The value of the header `Authorization`.
  ///
  /// - Parameters:
  ///   - path: as it is sent, percent-encoded; empty counts as `/`.
  ///   - query: as `query(_:)` makes it.
  ///   - headers: all that are signed, `host` and `x-amz-date` among them.
  ///   - payload: the SHA-256 of the body in lower-case hexadecimal, or `unsigned`.
  package func authorization(
    _ method: String, path: String, query: String, headers: [(name: String, value: String)],
    payload: String, at moment: Timestamp
  ) -> String {
    let fields = Self.canonical(headers)
    let signed = fields.map(\.name).joined(separator: ";")
    let request = [
      method, path.isEmpty ? "/" : path, query,
      fields.map { "\($0.name):\($0.value)\n" }.joined(), signed, payload,
    ].joined(separator: "\n")
    let time = Self.time(moment)
    let scope = "\(time.prefix(8))/\(region)/\(service)/aws4_request"
    let text = [
      Self.algorithm, time, scope, Digest.hex(.sha256, of: Array(request.utf8)),
    ].joined(separator: "\n")
    let signature = Digest.hex(Digest.keyed(Array(text.utf8), with: key(day: time.prefix(8))))
    return "\(Self.algorithm) Credential=\(credentials.accessKey)/\(scope), "
      + "SignedHeaders=\(signed), Signature=\(signature)"
  }

  /// The moment as `x-amz-date` has it: `20130524T000000Z`.
  package static func time(_ moment: Timestamp) -> String {
    moment.text.filter { $0 != "-" && $0 != ":" }
  }

  /// A query as it is both sent and signed: encoded, and in the order of names, then values.
  package static func query(_ items: [(name: String, value: ByteString)]) -> String {
    items.map { (Percent.encode(ByteString($0.name)), Percent.encode($0.value)) }
      .sorted { $0.0 == $1.0 ? $0.1 < $1.1 : $0.0 < $1.0 }
      .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }

  private static let algorithm = "AWS4-HMAC-SHA256"

  private func key(day: Substring) -> [UInt8] {
    [String(day), region, service, "aws4_request"].reduce(
      Array("AWS4\(credentials.secretKey)".utf8)
    ) { key, part in Digest.keyed(Array(part.utf8), with: key) }
  }

  /// Names in lower case and in order, the values of a repeated one with commas between them, and
  /// runs of spaces as one.
  private static func canonical(_ headers: [(name: String, value: String)]) -> [(
    name: String, value: String
  )] {
    var values: [String: [String]] = [:]
    for header in headers {
      values[header.name.lowercased(), default: []].append(
        header.value.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " "))
    }
    return values.map { ($0.key, $0.value.joined(separator: ",")) }.sorted { left, right in
      left.0.utf8.lexicographicallyPrecedes(right.0.utf8)
    }
  }
}
