import Platform

extension ObjectHead {
  /// What a success says of an object, checked against what was asked.
  ///
  /// - Throws: `StoreError`; `damaged` when another part came than was asked for, `server` when the
  ///   length is no number.
  init(_ response: HTTPResponse, to request: GetRequest, tag: String) throws(StoreError) {
    let headers = response.headers
    let length = try headers["content-length"].map { (text) throws(StoreError) -> Int64 in
      guard let length = Self.wholeNumber(text) else {
        throw StoreError(.server, "the answer's length is no number")
      }
      return length
    }
    self.init(
      size: length, range: length.map { 0..<$0 }, tag: tag,
      modified: headers["last-modified"].flatMap { Timestamp(httpDate: $0) },
      contentType: headers["content-type"])
    guard response.status == 206 else { return }
    guard let asked = request.range, !asked.isEmpty,
      let (range, size) = headers["content-range"].flatMap(Self.contentRange),
      range.lowerBound == asked.lowerBound,
      range.upperBound == min(asked.upperBound, size ?? asked.upperBound),
      length.map({ $0 == Int64(range.count) }) ?? true
    else {
      throw StoreError(
        .damaged,
        "another part came than was asked for: \(headers["content-range"].map(SupabaseErrors.line) ?? "unnamed")"
      )
    }
    self.range = range
    self.size = size
  }

  /// `bytes a-b/total`, where the total may be `*`.
  static func contentRange(_ text: String) -> (range: Range<Int64>, size: Int64?)? {
    guard text.hasPrefix("bytes ") else { return nil }
    let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = wholeNumber(ends[0]), let last = wholeNumber(ends[1]),
      first <= last, last < .max
    else { return nil }
    if parts[1] == "*" { return (first..<last + 1, nil) }
    guard let size = wholeNumber(parts[1]), last < size else { return nil }
    return (first..<last + 1, size)
  }

  /// A number of digits alone.
  private static func wholeNumber(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }
}
