/// Collects the status and the headers of an answer, line by line as libcurl gives them.
///
/// An interim answer (1xx) is forgotten when the next status line comes; lines after the end
/// (trailers of a chunked body) are ignored.
struct HTTPHead {
  /// What one more line meant.
  enum Step: Equatable {
    case more
    /// The blank line after a final answer's headers: the body comes next.
    case complete
    /// Not HTTP, or longer than the bound.
    case malformed(String)
  }

  /// Bytes that one answer's headers may hold together.
  static let limit = 256 << 10

  private(set) var status = 0
  private(set) var headers: [String: String] = [:]
  private(set) var isComplete = false
  private var length = 0

  var isSuccess: Bool { (200...299).contains(status) }

  mutating func add(_ line: UnsafeRawBufferPointer) -> Step {
    length += line.count
    guard length <= Self.limit else {
      return .malformed("its headers are longer than \(Self.limit >> 10) KiB")
    }
    if line.starts(with: "HTTP/".utf8) {
      self = HTTPHead(length: length)
      return readStatus(line)
    }
    if isComplete { return .more }
    let text = Self.trimmed(line[...])
    if text.isEmpty {
      guard status >= 200 else { return .more }
      isComplete = true
      return .complete
    }
    // A folded line of RFC 9112, section 5.2, belongs to no header that is used here.
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), line.first != 32, line.first != 9
    else { return .more }
    let name = String(decoding: text[..<colon], as: UTF8.self).lowercased()
    headers[name] = String(decoding: Self.trimmed(text[(colon + 1)...]), as: UTF8.self)
    return .more
  }

  init() {}

  private init(length: Int) {
    self.length = length
  }

  private mutating func readStatus(_ line: UnsafeRawBufferPointer) -> Step {
    let words = line.split(separator: 32, maxSplits: 2)
    guard words.count >= 2,
      let status = Int(String(decoding: Self.trimmed(words[1]), as: UTF8.self)),
      (100...999).contains(status)
    else { return .malformed("its status line is malformed") }
    self.status = status
    return .more
  }

  private static func trimmed(_ text: Slice<UnsafeRawBufferPointer>)
    -> Slice<UnsafeRawBufferPointer>
  {
    var text = text
    while let first = text.first, first == 32 || first == 9 { text = text.dropFirst() }
    while let last = text.last, last == 32 || last == 9 || last == 13 || last == 10 {
      text = text.dropLast()
    }
    return text
  }
}
