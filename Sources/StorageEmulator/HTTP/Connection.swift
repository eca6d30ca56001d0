import Glibc

/// One client's connection: a socket read through a buffer. Used by its own thread only.
final class Connection {
  private let descriptor: CInt
  private var buffer: [UInt8] = []
  private var position = 0
  private let scratch = UnsafeMutableRawBufferPointer.allocate(
    byteCount: 64 << 10, alignment: 16)

  /// - Parameter descriptor: a connected socket; who made it closes it.
  init(_ descriptor: CInt) {
    self.descriptor = descriptor
  }

  deinit {
    scratch.deallocate()
  }

  /// The bytes up to the next empty line, without it; nil at a clean end of the stream.
  func head() throws(Failure) -> [UInt8]? {
    while true {
      if let end = find([13, 10, 13, 10], from: position) {
        let head = Array(buffer[position..<end])
        position = end + 4
        return head
      }
      guard buffer.count - position < 64 << 10 else { throw .disconnected }
      let held = buffer.count - position
      guard try fill() else {
        if held > 0 { throw .disconnected }
        return nil
      }
    }
  }

  /// One line without its end.
  func line() throws(Failure) -> [UInt8] {
    while true {
      if let end = find([13, 10], from: position) {
        let line = Array(buffer[position..<end])
        position = end + 2
        return line
      }
      guard buffer.count - position < 64 << 10, try fill() else { throw .disconnected }
    }
  }

  /// Between one and `limit` bytes.
  func bytes(limit: Int) throws(Failure) -> [UInt8] {
    if position == buffer.count {
      guard try fill() else { throw .disconnected }
    }
    let end = min(buffer.count, position + limit)
    defer { position = end }
    return Array(buffer[position..<end])
  }

  /// Sends everything, or finds the client gone.
  func send(_ bytes: [UInt8]) throws(Failure) {
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { raw in
        Glibc.send(
          descriptor, raw.baseAddress.map { $0 + done }, raw.count - done, CInt(MSG_NOSIGNAL))
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw .disconnected }
      done += count
    }
  }

  /// Says that nothing more will come, and takes what the client still sends, so that an answer
  /// given before the body was read is not lost to a reset.
  func linger() {
    shutdown(descriptor, CInt(SHUT_WR))
    var timeout = timeval(tv_sec: 1, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var rest = 256 << 20
    while rest > 0 {
      let count = recv(descriptor, scratch.baseAddress, scratch.count, 0)
      if count <= 0 { return }
      rest -= count
    }
  }

  /// Whether the client has closed its side; waits up to the given time for it.
  func isClosedByClient(within milliseconds: Int32) -> Bool {
    var poll = pollfd(fd: descriptor, events: peerClosed, revents: 0)
    return Glibc.poll(&poll, 1, milliseconds) > 0
  }

  /// Whether bytes, or the end, can be read; waits up to the given time for them.
  func isReadable(within milliseconds: Int32) -> Bool {
    if position < buffer.count { return true }
    var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return Glibc.poll(&poll, 1, milliseconds) > 0
  }

  private func fill() throws(Failure) -> Bool {
    if position > 0 {
      buffer.removeFirst(position)
      position = 0
    }
    while true {
      let count = recv(descriptor, scratch.baseAddress, scratch.count, 0)
      if count < 0 && errno == EINTR { continue }
      if count < 0 { throw .disconnected }
      buffer.append(contentsOf: UnsafeRawBufferPointer(rebasing: scratch[..<count]))
      return count > 0
    }
  }

  private func find(_ mark: [UInt8], from start: Int) -> Int? {
    Bytes.find(mark, in: buffer, from: start)
  }
}

/// POLLRDHUP of poll(2), which Swift does not see: the peer has closed its side.
private let peerClosed: Int16 = 0x2000
