import Glibc
package import Platform

/// A server on loopback that says exactly the bytes a test wants, and fails exactly as told.
///
/// Each connection is served by a closure on a thread of its own, which reads requests and sends
/// bytes, pauses, resets or holds. The server keeps every request, and counts.
package final class RawServer: Sendable {
  private struct State {
    var connections: [Int: RawConnection] = [:]
    var accepted = 0
    var requests: [RawRequest] = []
    var open = 0
    var mostOpen = 0
    var isStopped = false
  }

  /// A socket that is closed when neither the server nor its thread needs it any more: a number that
  /// is given to another server's socket meanwhile would have this thread take its clients.
  private final class Listener: Sendable {
    let socket: File

    init(_ socket: consuming File) {
      self.socket = socket
    }
  }

  private let state = Locked(State())
  private let listener: Listener
  package let port: UInt16

  /// Listens on a free port of 127.0.0.1.
  ///
  /// - Parameters:
  ///   - backlog: connections that the kernel accepts on its own before anyone asks (listen(2)).
  ///   - serve: serves one connection; when it returns, the connection is closed.
  package init(
    backlog: CInt = 128, _ serve: @escaping @Sendable (RawConnection) -> Void
  ) throws(Errno) {
    let opened = try Self.listen(backlog)
    port = opened.port
    let listener = Listener(File(owning: opened.descriptor))
    self.listener = listener
    let state = state
    _ = try Thread(name: "raw-accept") {
      while true {
        let client = accept(listener.socket.descriptor, nil, nil)
        guard client >= 0 else {
          if Errno.last == .interrupted { continue }
          return
        }
        Self.start(client, state, serve)
      }
    }
  }

  deinit {
    stop()
  }

  package var url: String { "http://127.0.0.1:\(port)" }

  /// Connections accepted so far.
  package var accepted: Int { state.withLock { $0.accepted } }

  /// Requests read so far, in the order of their arrival.
  package var requests: [RawRequest] { state.withLock { $0.requests } }

  /// The most connections that were open at a time.
  package var mostOpen: Int { state.withLock { $0.mostOpen } }

  /// Waits until a number of requests has been read.
  ///
  /// - Returns: false when that took longer than the time given.
  package func waitForRequests(_ count: Int, within span: Span = .seconds(10)) -> Bool {
    state.wait(until: .now + span) { $0.requests.count >= count ? true : nil } ?? false
  }

  /// Waits until a number of connections has been accepted.
  ///
  /// - Returns: false when that took longer than the time given.
  package func waitForConnections(_ count: Int, within span: Span = .seconds(10)) -> Bool {
    state.wait(until: .now + span) { $0.accepted >= count ? true : nil } ?? false
  }

  /// Closes the port and every connection.
  package func stop() {
    let connections = state.withLock { state in
      state.isStopped = true
      return Array(state.connections.values)
    }
    _ = shutdown(listener.socket.descriptor, CInt(SHUT_RDWR))
    for connection in connections { connection.cut() }
    state.wakeAll()
  }

  private static func start(
    _ client: CInt, _ state: Locked<State>, _ serve: @escaping @Sendable (RawConnection) -> Void
  ) {
    var one: CInt = 1
    setsockopt(client, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
    let connection = RawConnection(client) { request in
      state.withLock { $0.requests.append(request) }
      state.wakeAll()
    }
    let id = state.withLock { state -> Int? in
      guard !state.isStopped else { return nil }
      state.accepted += 1
      state.open += 1
      state.mostOpen = max(state.mostOpen, state.open)
      state.connections[state.accepted] = connection
      return state.accepted
    }
    guard let id else { return }
    state.wakeAll()
    do throws(Errno) {
      _ = try Thread(name: "raw-serve") {
        serve(connection)
        state.withLock { state in
          state.open -= 1
          state.connections[id] = nil
        }
        connection.cut()
      }
    } catch {
      connection.cut()
    }
  }

  private static func listen(_ backlog: CInt) throws(Errno) -> (descriptor: CInt, port: UInt16) {
    let descriptor = try check {
      socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    }
    var address = sockaddr_in.loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    do throws(Errno) {
      _ = try withUnsafeMutablePointer(to: &address) { (pointer) throws(Errno) in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (generic) throws(Errno) in
          try check { bind(descriptor, generic, length) }
          try check { Glibc.listen(descriptor, backlog) }
          try check { getsockname(descriptor, generic, &length) }
        }
      }
    } catch {
      close(descriptor)
      throw error
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }
}

/// A request as it came over the wire.
package struct RawRequest: Sendable {
  /// The request line and the headers, unchanged, without the blank line.
  package var head: String
  package var body: [UInt8]

  package var method: String { word(0) }
  /// The target as it was sent.
  package var target: String { word(1) }

  /// The value of a header; nil when it was not sent.
  package func header(_ name: String) -> String? {
    for line in head.split(separator: "\r\n").dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0].lowercased() == name.lowercased() else { continue }
      return String(parts[1].drop { $0 == " " })
    }
    return nil
  }

  private func word(_ index: Int) -> String {
    let line = head.prefix { $0 != "\r\n" }
    let words = line.split(separator: " ")
    return words.indices.contains(index) ? String(words[index]) : ""
  }
}

/// The server's end of one connection.
package final class RawConnection: Sendable {
  private let socket: File
  private let rest = Locked([UInt8]())
  private let note: @Sendable (RawRequest) -> Void

  fileprivate init(_ descriptor: CInt, note: @escaping @Sendable (RawRequest) -> Void) {
    socket = File(owning: descriptor)
    self.note = note
  }

  /// Connects to a port of this machine.
  package init(to port: UInt16) throws(Errno) {
    let descriptor = try check {
      Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    }
    socket = File(owning: descriptor)
    note = { _ in }
    var address = sockaddr_in.loopback(port)
    _ = try withUnsafePointer(to: &address) { (pointer) throws(Errno) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (generic) throws(Errno) in
        try check {
          connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
    }
  }

  /// Reads the next request, body included.
  ///
  /// - Returns: nil when the client has closed.
  package func readRequest() -> RawRequest? {
    var bytes = rest.withLock { $0 }
    let blank = Array("\r\n\r\n".utf8)
    while true {
      if let end = Self.find(blank, in: bytes) {
        var request = RawRequest(
          head: String(decoding: bytes[..<end], as: UTF8.self), body: [])
        bytes.removeFirst(end + 4)
        let length = request.header("content-length").flatMap { Int($0) } ?? 0
        while bytes.count < length {
          guard let more = receive() else { return nil }
          bytes += more
        }
        request.body = Array(bytes.prefix(length))
        let left = Array(bytes.dropFirst(length))
        rest.withLock { $0 = left }
        note(request)
        return request
      }
      guard let more = receive() else { return nil }
      bytes += more
    }
  }

  /// Sends text as it is.
  ///
  /// - Returns: false when the client is gone.
  @discardableResult
  package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(
          socket.descriptor, $0.baseAddress.map { $0 + done }, bytes.count - done,
          CInt(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      done += count
    }
    return true
  }

  /// Sends a whole answer with its length.
  @discardableResult
  package func answer(_ status: String = "200 OK", headers: [String] = [], _ body: String = "")
    -> Bool
  {
    let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + headers
    return send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
  }

  /// Says nothing until the client closes or the server stops; what the client sends is dropped.
  package func hold() {
    while receive() != nil {}
  }

  /// Says nothing for a while.
  package func pause(_ span: Span) {
    var time = Instant(nanoseconds: span.nanoseconds).timespec
    nanosleep(&time, nil)
  }

  /// Ends the connection with a reset (RST) instead of an orderly close.
  package func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      socket.descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    // Connecting to "unspecified" drops the connection at once (connect(2)), with the descriptor
    // still ours.
    var address = sockaddr()
    address.sa_family = sa_family_t(AF_UNSPEC)
    connect(socket.descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size))
  }

  /// Ends the connection in order (FIN), both ways.
  package func cut() {
    _ = shutdown(socket.descriptor, CInt(SHUT_RDWR))
  }

  /// Receives what comes next, whatever it is.
  ///
  /// - Returns: nil when the other side has closed.
  package func receive() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(socket.descriptor, &buffer, buffer.count, 0)
    return count > 0 ? Array(buffer.prefix(count)) : nil
  }

  private static func find(_ mark: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= mark.count else { return nil }
    return (0...(bytes.count - mark.count)).first { start in
      bytes[start] == mark[0] && bytes[start..<(start + mark.count)].elementsEqual(mark)
    }
  }
}

extension sockaddr_in {
  fileprivate static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    address.sin_port = port.bigEndian
    return address
  }
}
