import CLinux
import Glibc

/// Tells when a link, an address or a route of this machine changes (rtnetlink(7)).
///
/// Changes come in bursts: one call is made for all that arrive within the settling time.
package final class LinkWatch: Sendable {
  private let bell: File
  // Held here too: a bell without its other end would raise SIGPIPE.
  private let sockets: Sockets

  /// Starts watching, on a thread of its own.
  ///
  /// - Parameters:
  ///   - settle: how long a burst is let finish before it is told.
  ///   - onChange: called on the watching thread.
  /// - Throws: `Errno` where the system has no such socket.
  package init(
    settle: Span = .milliseconds(250), onChange: @escaping @Sendable () -> Void
  ) throws(Errno) {
    let socket = try Self.open()
    var ends: [CInt] = [-1, -1]
    try check { bucketfs_pipe2(&ends, O_CLOEXEC) }
    let listening = File(owning: ends[0])
    bell = File(owning: ends[1])
    // A closure cannot own what is not copyable, so these two live in a box.
    let sockets = Sockets(changes: socket, bell: listening)
    self.sockets = sockets
    _ = try Thread(name: "links") {
      while Self.wait(sockets, until: nil) {
        // What follows within the settling time belongs to the same change.
        let end = Instant.now + settle
        while Instant.now < end {
          guard Self.wait(sockets, until: end) else { return }
        }
        onChange()
      }
    }
  }

  deinit {
    stop()
  }

  /// Ends the watching; no call is made after the present one.
  package func stop() {
    var byte: UInt8 = 1
    // A full pipe has rung already.
    _ = write(bell.descriptor, &byte, 1)
  }

  private final class Sockets: Sendable {
    let changes: File
    let bell: File

    init(changes: consuming File, bell: consuming File) {
      self.changes = changes
      self.bell = bell
    }
  }

  private static func open() throws(Errno) -> File {
    let descriptor = try check {
      socket(
        CInt(BUCKETFS_AF_NETLINK),
        CInt(SOCK_RAW.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue),
        CInt(BUCKETFS_NETLINK_ROUTE))
    }
    let file = File(owning: descriptor)
    var address = bucketfs_sockaddr_nl(
      family: UInt16(BUCKETFS_AF_NETLINK), padding: 0, port: 0,
      groups: UInt32(BUCKETFS_RTMGRP_CHANGES))
    let length = socklen_t(MemoryLayout<bucketfs_sockaddr_nl>.size)
    try withUnsafePointer(to: &address) { (pointer) throws(Errno) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (generic) throws(Errno) in
        _ = try check { bind(descriptor, generic, length) }
      }
    }
    return file
  }

  /// Waits for a change, or for the end.
  ///
  /// - Returns: false when the watching is over.
  private static func wait(_ sockets: Sockets, until deadline: Instant?) -> Bool {
    let milliseconds = deadline.map { deadline in
      CInt(clamping: max(deadline.since(.now).nanoseconds / 1_000_000, 0) + 1)
    }
    var polled = [
      pollfd(fd: sockets.changes.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: sockets.bell.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    guard poll(&polled, 2, milliseconds ?? -1) >= 0 else { return Errno.last == .interrupted }
    guard polled[1].revents == 0 else { return false }
    // What changed does not matter, and neither does a change that did not fit (ENOBUFS).
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    while recv(sockets.changes.descriptor, &buffer, buffer.count, 0) > 0 {}
    return true
  }
}
