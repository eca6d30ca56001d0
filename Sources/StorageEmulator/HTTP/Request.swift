/// The head of one request as it came over the wire; nothing in it is decoded.
struct Request: Sendable {
  let method: String
  /// The path with its query, percent signs as sent.
  let target: String
  var headers: Headers

  /// Reads a head without its closing empty line.
  ///
  /// - Returns: nil when it is not one of HTTP/1.0 or 1.1.
  init?(head: [UInt8]) {
    let lines = String(decoding: head, as: UTF8.self).split(
      separator: "\r\n", omittingEmptySubsequences: false)
    let words = lines[0].split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return nil }
    method = String(words[0])
    target = String(words[1])
    var fields: [(name: String, value: String)] = []
    for line in lines.dropFirst() where !line.isEmpty {
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      var text = String(value)
      while text.last == " " || text.last == "\t" { text.removeLast() }
      fields.append((String(line[..<colon]), text))
    }
    headers = Headers(fields)
  }

  var asksToClose: Bool { headers["Connection"]?.lowercased() == "close" }
}
