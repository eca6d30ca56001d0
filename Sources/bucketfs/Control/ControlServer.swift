import CLinux
import Glibc
import Platform

/// Answers the verbs of other processes about the mount that this process serves.
///
/// One thread accepts and watches; each connection has one request, on a thread of its own. A client
/// that says nothing, too much or nonsense costs one of a bounded number of threads for a bounded
/// time, and nothing else.
final class ControlServer: Sendable {
  typealias Handler = @Sendable (ControlRequest, Cancellation) -> ControlReply

  /// How long a client may take for its request, and to take its answer.
  static let patience = Span.seconds(5)
  static let longestRequest = 65536
  private static let mostConnections = 16

  /// A connection that is being answered.
  private struct Connection {
    let descriptor: CInt
    let cancellation: Cancellation
    /// Whether the request is in and the answer is not ready yet: signs of life are sent meanwhile.
    var working = false
    /// Whether the client has gone, so that it is not watched any more.
    var gone = false
  }

  private struct State {
    var connections: [Int: Connection] = [:]
    var nextID = 0
    var stopped = false

    /// Ends the connection that has been silent for longest, so that idle ones keep nobody out.
    func makeRoom() {
      let silent = connections.filter { !$0.value.working }.min { $0.key < $1.key }
      // Under the lock, so that the descriptor is still this connection's; its thread closes it.
      if let silent { _ = shutdown(silent.value.descriptor, CInt(SHUT_RDWR)) }
    }
  }

  private let state = Locked(State())
  private let handler: Handler
  private let socket: ControlSocket
  private let listener: File
  private let wakeOut: File
  private let wakeIn: File
  /// What `start` began: the thread, and the inode number of the socket's name.
  private let running = Locked<(thread: Thread, inode: UInt)?>(nil)

  /// Finds a place for the socket; nobody is answered yet.
  ///
  /// - Parameters:
  ///   - mountpoint: as the kernel knows it.
  ///   - handler: runs on any thread; its cancellation fires when the client goes away.
  init(at mountpoint: ByteString, handler: @escaping Handler) throws(Complaint) {
    self.handler = handler
    socket = try ControlSocket(servingAt: mountpoint)
    do throws(Errno) {
      var ends: [CInt] = [-1, -1]
      try check { bucketfs_pipe2(&ends, O_CLOEXEC | O_NONBLOCK) }
      wakeOut = File(owning: ends[0])
      wakeIn = File(owning: ends[1])
      listener = try ControlSocket.stream()
    } catch {
      throw Complaint(.failed, "the control socket cannot be made: \(error)")
    }
  }

  /// Listens, and answers from then on.
  func start() throws(Errno) {
    let inode = try socket.listen(listener)
    let thread = try Thread(name: "control") { [self] in serve() }
    running.withLock { $0 = (thread, inode) }
  }

  /// Stops listening, stops what is being answered, and removes the socket.
  func stop() {
    guard let (thread, inode) = running.withLock({ $0 }) else { return }
    socket.remove(inode: inode)
    let cancellations = state.withLock { state -> [Cancellation] in
      state.stopped = true
      return state.connections.values.map(\.cancellation)
    }
    for cancellation in cancellations { cancellation.cancel() }
    wake()
    thread.join(until: .now + Self.patience)
  }

  private func wake() {
    var byte: UInt8 = 0
    // A full pipe wakes the thread just as well.
    _ = write(wakeIn.descriptor, &byte, 1)
  }

  private func serve() {
    while true {
      let (stopped, watched) = state.withLock { state -> (Bool, [Int: CInt]) in
        (state.stopped, state.connections.filter { !$0.value.gone }.mapValues(\.descriptor))
      }
      if stopped { return }
      let ids = Array(watched.keys)
      var entries = [listener.descriptor, wakeOut.descriptor].map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      // POLLHUP is told without being asked for.
      entries += ids.map { pollfd(fd: watched[$0] ?? -1, events: 0, revents: 0) }
      guard poll(&entries, nfds_t(entries.count), watched.isEmpty ? -1 : 1000) >= 0 else {
        if errno != EINTR { Log.error("the control socket fails: \(Errno.last)") }
        if errno != EINTR { return }
        continue
      }
      if entries[1].revents != 0 { drain() }
      if entries[0].revents != 0 { accept() }
      for (index, id) in ids.enumerated() where entries[index + 2].revents != 0 { leave(id) }
      showLife()
    }
  }

  private func drain() {
    var bytes = [UInt8](repeating: 0, count: 64)
    while read(wakeOut.descriptor, &bytes, bytes.count) > 0 {}
  }

  private func accept() {
    let descriptor = Glibc.accept(listener.descriptor, nil, nil)
    guard descriptor >= 0 else {
      if errno == EMFILE || errno == ENFILE {
        // The connection stays in the queue: without a pause this would be a busy loop.
        usleep(100_000)
      }
      return
    }
    // Cannot fail on a descriptor that is open.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    let cancellation = Cancellation()
    let id = state.withLock { state -> Int? in
      if state.connections.count >= Self.mostConnections { state.makeRoom() }
      guard state.connections.count < 2 * Self.mostConnections else { return nil }
      state.nextID += 1
      state.connections[state.nextID] = Connection(
        descriptor: descriptor, cancellation: cancellation)
      return state.nextID
    }
    guard let id else {
      _ = close(descriptor)
      return
    }
    do throws(Errno) {
      _ = try Thread(name: "control client") { [self] in answer(id, descriptor, cancellation) }
    } catch {
      Log.warning("a control request is turned away: \(error)")
      end(id, descriptor)
    }
  }

  private func answer(_ id: Int, _ descriptor: CInt, _ cancellation: Cancellation) {
    defer { end(id, descriptor) }
    do throws(Wire.Failure) {
      let reply = try reply(id, descriptor, cancellation)
      state.withLock { $0.connections[id]?.working = false }
      try Wire.send(JSON.encode(reply), to: descriptor, within: Self.patience)
    } catch {
      Log.debug("a control client is given up: \(error)")
    }
  }

  private func reply(_ id: Int, _ descriptor: CInt, _ cancellation: Cancellation)
    throws(Wire.Failure) -> ControlReply
  {
    let user: UInt32
    do throws(Errno) {
      user = try ControlSocket.peer(of: descriptor)
    } catch {
      throw .system(error)
    }
    guard user == geteuid() || user == 0 else {
      Log.warning("user \(user) tried to command this mount")
      return ControlReply(
        Complaint(.refused, "this mount is served by another user (\(geteuid()))"))
    }
    let line: [UInt8]
    do throws(Wire.Failure) {
      line = try Wire.receive(
        from: descriptor, limit: Self.longestRequest, silence: Self.patience)
    } catch {
      guard error == .tooLong || error == .silent else { throw error }
      return ControlReply(Complaint(.usage, "that is no request of bucketfs"))
    }
    guard let request = JSON.decode(ControlRequest.self, from: line) else {
      return ControlReply(Complaint(.usage, "that is no request of bucketfs"))
    }
    state.withLock { $0.connections[id]?.working = true }
    wake()
    return handler(request, cancellation)
  }

  private func end(_ id: Int, _ descriptor: CInt) {
    state.withLock { _ = $0.connections.removeValue(forKey: id) }
    _ = close(descriptor)
  }

  /// Stops the work for a client that has gone.
  private func leave(_ id: Int) {
    let cancellation = state.withLock { state -> Cancellation? in
      state.connections[id]?.gone = true
      return state.connections[id]?.cancellation
    }
    cancellation?.cancel()
  }

  /// Sends an empty line to every client that waits, which tells a slow answer from a dead process.
  private func showLife() {
    state.withLock { state in
      for connection in state.connections.values where connection.working && !connection.gone {
        var byte = UInt8(ascii: "\n")
        // Does not wait; under the lock, so that no answer is interrupted and no descriptor reused.
        _ = send(
          connection.descriptor, &byte, 1,
          CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
      }
    }
  }
}
