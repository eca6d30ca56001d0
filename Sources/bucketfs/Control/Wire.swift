import CLinux
import Glibc
import Platform

/// Lines of bytes over a socket, each with a deadline.
enum Wire {
  enum Failure: Error, Equatable {
    /// The other side said nothing, or took nothing, in time.
    case silent
    /// The other side closed the connection before its line ended.
    case closed
    /// The line is longer than allowed.
    case tooLong
    case system(Errno)
  }

  /// Reads up to a line feed. Empty lines, which say "still at work", start the time anew.
  ///
  /// - Parameter silence: how long the other side may send no line at all.
  static func receive(from descriptor: CInt, limit: Int, silence: Span) throws(Failure) -> [UInt8] {
    var line: [UInt8] = []
    var deadline = Instant.now + silence
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      try wait(descriptor, for: POLLIN, until: deadline)
      let count = recv(descriptor, &chunk, chunk.count, CInt(MSG_DONTWAIT))
      if count == 0 { throw .closed }
      if count < 0 {
        if errno == EINTR || errno == EAGAIN { continue }
        throw errno == ECONNRESET ? .closed : .system(Errno.last)
      }
      for byte in chunk.prefix(count) {
        if byte != UInt8(ascii: "\n") {
          line.append(byte)
        } else if !line.isEmpty {
          return line
        } else {
          deadline = Instant.now + silence
        }
      }
      if line.count > limit { throw .tooLong }
    }
  }

  /// Writes a line and its line feed.
  static func send(_ line: [UInt8], to descriptor: CInt, within span: Span) throws(Failure) {
    var rest = (line + [UInt8(ascii: "\n")])[...]
    let deadline = Instant.now + span
    while !rest.isEmpty {
      try wait(descriptor, for: POLLOUT, until: deadline)
      let count = rest.withUnsafeBytes {
        Glibc.send(
          descriptor, $0.baseAddress, $0.count,
          CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
      }
      if count < 0 {
        if errno == EINTR || errno == EAGAIN { continue }
        throw errno == EPIPE || errno == ECONNRESET ? .closed : .system(Errno.last)
      }
      rest = rest.dropFirst(count)
    }
  }

  private static func wait(_ descriptor: CInt, for events: CInt, until deadline: Instant)
    throws(Failure)
  {
    while true {
      let left = deadline.since(.now).nanoseconds
      guard left > 0 else { throw .silent }
      var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
      let count = poll(&entry, 1, CInt(clamping: left / 1_000_000 + 1))
      if count > 0 { return }
      if count < 0, errno != EINTR { throw .system(Errno.last) }
    }
  }
}
