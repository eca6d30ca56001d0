import Glibc
import Platform

/// A listening socket on loopback that runs each connection on a thread of its own.
final class Listener: Sendable {
  let port: UInt16
  private let descriptor: CInt
  private let state = Locked(State())

  private struct State {
    var open: Set<CInt> = []
    /// The socket's number is about to be another file's.
    var isClosing = false
    var isStopped = false
  }

  /// - Parameter port: 0 lets the system choose one.
  init(port: UInt16) throws(Errno) {
    descriptor = try check {
      socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }
    var on: CInt = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    do throws(Errno) {
      try withSocketAddress(&address) { (pointer) throws(Errno) in
        _ = try check { bind(descriptor, pointer, length) }
        _ = try check { listen(descriptor, 512) }
        _ = try check { getsockname(descriptor, pointer, &length) }
      }
    } catch {
      close(descriptor)
      throw error
    }
    self.port = UInt16(bigEndian: address.sin_port)
  }

  /// Takes connections until `stop`; each is handed to `serve` on its own thread.
  func start(_ serve: @escaping @Sendable (Connection) -> Void) throws(Errno) {
    _ = try Thread(name: "accept") { [self] in
      while true {
        let client = accept(descriptor, nil, nil)
        if client < 0 {
          if errno == EINTR || errno == ECONNABORTED { continue }
          if errno == EMFILE || errno == ENFILE {
            usleep(10_000)
            continue
          }
          break
        }
        run(client, serve)
      }
      state.withLock { $0.isClosing = true }
      close(descriptor)
      state.withLock { $0.isStopped = true }
      state.wakeAll()
    }
  }

  /// Ends every connection at once, as a killed server does, and waits until the port is free.
  func stop() {
    state.withLock { state in
      if !state.isClosing { shutdown(descriptor, CInt(SHUT_RDWR)) }
    }
    _ = state.wait { $0.isStopped ? true : nil }
    state.withLock { state in
      for client in state.open { shutdown(client, CInt(SHUT_RDWR)) }
    }
    _ = state.wait { $0.open.isEmpty ? true : nil }
  }

  private func run(_ client: CInt, _ serve: @escaping @Sendable (Connection) -> Void) {
    _ = fcntl(client, F_SETFD, FD_CLOEXEC)
    var on: CInt = 1
    setsockopt(
      client, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
    state.withLock { _ = $0.open.insert(client) }
    do throws(Errno) {
      _ = try Thread(name: "connection") { [self] in
        serve(Connection(client))
        end(client)
      }
    } catch {
      Log.error("no thread for a connection: \(error)")
      end(client)
    }
  }

  private func end(_ client: CInt) {
    // The number leaves the set before it is closed and may name another connection.
    state.withLock { _ = $0.open.remove(client) }
    close(client)
    state.wakeAll()
  }
}

private func withSocketAddress(
  _ address: inout sockaddr_in,
  _ body: (UnsafeMutablePointer<sockaddr>) throws(Errno) -> Void
) throws(Errno) {
  try withUnsafeMutablePointer(to: &address) { (pointer) throws(Errno) in
    try UnsafeMutableRawPointer(pointer).withMemoryRebound(to: sockaddr.self, capacity: 1) {
      (pointer) throws(Errno) in
      try body(pointer)
    }
  }
}
