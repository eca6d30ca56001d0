import Glibc
import Platform
import StorageEmulator

/// An HTTP client of one request a connection that shows exactly what came over the wire.
///
/// curl and Foundation tidy paths, follow rules and hide torn answers; the tests need them raw.
struct RawClient {
  let port: UInt16

  struct Answer {
    var status: Int
    var headers: Headers
    /// What came, be it less or more than Content-Length says.
    var body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
    var json: JSON {
      do throws(JSON.Malformed) {
        return try JSON(reading: body)
      } catch {
        return .null
      }
    }
  }

  /// Sends a request with `Connection: close` and reads until the server closes.
  ///
  /// - Returns: nil when the connection ended without a head.
  /// - Throws: `Errno`, ETIMEDOUT when nothing came for `timeout` seconds.
  func send(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil,
    timeout: Int = 10
  ) throws(Errno) -> Answer? {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    return try exchange(Array((head + "\r\n").utf8) + (body ?? []), timeout: timeout)
  }

  /// Sends bytes as they are and reads until the server closes.
  func exchange(_ bytes: [UInt8], timeout: Int = 10) throws(Errno) -> Answer? {
    let descriptor = try connect(timeout: timeout)
    defer { close(descriptor) }
    Self.push(bytes, descriptor)
    return Self.parse(try readAll(descriptor))
  }

  /// Sends bytes on a connection, reads all that comes until the server closes, and closes too.
  func talk(_ descriptor: CInt, _ bytes: [UInt8]) throws(Errno) -> String {
    defer { close(descriptor) }
    Self.push(bytes, descriptor)
    return String(decoding: try readAll(descriptor), as: UTF8.self)
  }

  private static func push(_ bytes: [UInt8], _ descriptor: CInt) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes { raw in
        Glibc.send(
          descriptor, raw.baseAddress.map { $0 + sent }, raw.count - sent, CInt(MSG_NOSIGNAL))
      }
      // The server may answer and close before it has read everything.
      if count <= 0 { break }
      sent += count
    }
  }

  func connect(timeout: Int) throws(Errno) -> CInt {
    let descriptor = try check { socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      let error = Errno.last
      close(descriptor)
      throw error
    }
    var limit = timeval(tv_sec: timeout, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    return descriptor
  }

  func readAll(_ descriptor: CInt) throws(Errno) -> [UInt8] {
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = recv(descriptor, &piece, piece.count, 0)
      if count < 0 && errno == EAGAIN { throw .timedOut }
      // A reset ends the stream as a close does; the tests count the bytes.
      if count <= 0 { return bytes }
      bytes += piece.prefix(count)
    }
  }

  static func parse(_ bytes: [UInt8]) -> Answer? {
    let mark: [UInt8] = [13, 10, 13, 10]
    guard
      let end = bytes.indices.first(where: { bytes[$0...].starts(with: mark) })
    else { return nil }
    let lines = String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\r\n")
    guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { return nil }
    if status == 100 { return parse(Array(bytes[(end + 4)...])) }
    var headers: [(name: String, value: String)] = []
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      headers.append(
        (String(parts[0]), parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""))
    }
    return Answer(status: status, headers: Headers(headers), body: Array(bytes[(end + 4)...]))
  }
}
