import Platform

/// A multipart/form-data body (RFC 7578): the text fields before the first file, then the file.
final class Multipart {
  private let body: RequestBody
  private let mark: [UInt8]
  private var buffer: [UInt8]
  private var isAtEnd = false

  /// The text fields that came before the file.
  private(set) var fields: [String: String] = [:]

  struct FilePart {
    let type: String?
  }

  init(_ body: RequestBody, boundary: String) {
    self.body = body
    mark = Array("\r\n--\(boundary)".utf8)
    // The first boundary has no line end before it; one is put there.
    buffer = [13, 10]
  }

  /// Reads up to the first part that is a file; nil when there is none.
  func openFile() throws(Failure) -> FilePart? {
    _ = try take(until: mark, limit: 1 << 20)
    while true {
      guard let rest = try take(until: [13, 10], limit: 64), !rest.starts(with: [45, 45]) else {
        return nil
      }
      buffer.insert(contentsOf: [13, 10], at: 0)
      guard let head = try take(until: [13, 10, 13, 10], limit: 64 << 10) else { return nil }
      let headers = Self.headers(head)
      let disposition = headers["Content-Disposition"] ?? ""
      if Self.parameter("filename", of: disposition) != nil {
        return FilePart(type: headers["Content-Type"])
      }
      guard let value = try take(until: mark, limit: 1 << 20), fields.count < 10 else {
        return nil
      }
      fields[Self.parameter("name", of: disposition) ?? ""] = String(
        decoding: value, as: UTF8.self)
    }
  }

  /// The next bytes of the open file; nil at its end, when the rest of the body is read too.
  func next() throws(Failure) -> [UInt8]? {
    guard !isAtEnd else { return nil }
    while true {
      if let end = Bytes.find(mark, in: buffer) {
        let piece = Array(buffer[..<end])
        isAtEnd = true
        while try body.next() != nil {}
        return piece.isEmpty ? nil : piece
      }
      if buffer.count > mark.count {
        let piece = Array(buffer[..<(buffer.count - mark.count)])
        buffer.removeFirst(piece.count)
        return piece
      }
      guard let more = try body.next() else { throw .refused(.noContent) }
      buffer += more
    }
  }

  /// The bytes before a mark, which is taken too; nil when the body ends or the limit comes first.
  private func take(until mark: [UInt8], limit: Int) throws(Failure) -> [UInt8]? {
    while true {
      if let end = Bytes.find(mark, in: buffer) {
        let bytes = Array(buffer[..<end])
        buffer.removeFirst(end + mark.count)
        return bytes
      }
      guard buffer.count < limit + (64 << 10), let more = try body.next() else { return nil }
      buffer += more
    }
  }

  private static func headers(_ head: [UInt8]) -> Headers {
    var fields: [(name: String, value: String)] = []
    for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      fields.append((String(parts[0]), String(parts[1].drop { $0 == " " })))
    }
    return Headers(fields)
  }

  private static func parameter(_ name: String, of header: String) -> String? {
    for parameter in header.split(separator: ";").dropFirst() {
      let parts = parameter.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[0].drop(while: { $0 == " " }) == name else { continue }
      return String(parts[1].filter { $0 != "\"" })
    }
    return nil
  }
}
