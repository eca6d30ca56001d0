extension SupabaseErrors {
  /// What a failed answer to a resumable upload means.
  ///
  /// This part of the server gives the true HTTP status and a line of text. Failures of the token,
  /// and of what stands before it, come as elsewhere.
  static func resumableVerdict(on response: HTTPResponse) -> Verdict {
    if SupabaseErrorBody(response.body) != nil { return verdict(on: response, reading: false) }
    let text = String(decoding: response.body.prefix(1000), as: UTF8.self)
    let row = resumableTable.first { row in
      row.status == response.status && (row.says.map { text.contains($0) } ?? true)
    }
    guard let row else { return Verdict(error: foreign(response.status)) }
    let words = line(text.trimmingLineEnd)
    return Verdict(
      error: StoreError(
        row.kind,
        "the store says: \(words.isEmpty ? "nothing" : words) (HTTP \(response.status))"),
      cause: row.cause)
  }

  private struct ResumableRow: Sendable {
    var status: Int
    /// Part of the text; where it is needed, another text is not the store's.
    var says: String?
    var kind: StoreError.Kind
    var cause: Cause?
  }

  /// The first row that matches counts.
  private static let resumableTable: [ResumableRow] = [
    ResumableRow(status: 400, says: "Invalid key", kind: .keyRefused),
    ResumableRow(
      status: 400, says: "Bucket name invalid", kind: .keyRefused, cause: .bucketMissing),
    ResumableRow(status: 400, says: "due to lock", kind: .server),
    ResumableRow(
      status: 400, says: "already completed", kind: .unsupported, cause: .uploadFinished),
    ResumableRow(status: 400, says: "Invalid ", kind: .unsupported),
    ResumableRow(status: 400, says: "Metadata header", kind: .unsupported),
    ResumableRow(status: 403, says: "header required", kind: .unsupported),
    ResumableRow(status: 403, says: "row-level security", kind: .refused),
    ResumableRow(status: 404, says: "Bucket not found", kind: .notFound, cause: .bucketMissing),
    ResumableRow(
      status: 404, says: "file for this url", kind: .notFound, cause: .uploadMissing),
    ResumableRow(status: 409, says: "Upload-Offset", kind: .server, cause: .offsetConflict),
    ResumableRow(status: 409, says: "already exists", kind: .exists),
    ResumableRow(
      status: 410, says: "file for this url", kind: .notFound, cause: .uploadMissing),
    ResumableRow(status: 412, kind: .unsupported),
    ResumableRow(status: 413, kind: .tooLarge),
    ResumableRow(status: 415, kind: .typeRefused),
    ResumableRow(status: 423, kind: .server),
    ResumableRow(status: 429, kind: .throttled),
    ResumableRow(status: 500, kind: .server),
    ResumableRow(status: 501, kind: .unsupported),
    ResumableRow(status: 503, kind: .server),
  ]
}

extension String {
  fileprivate var trimmingLineEnd: String { String(prefix { $0 != "\n" && $0 != "\r\n" }) }
}
