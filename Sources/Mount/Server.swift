import CFuse
import FileSystem
import Glibc
import Platform

/// What the kernel's requests are served with; libfuse hands it to every callback.
final class Server: Sendable {
  let fileSystem: FileSystem
  let slowLane: SlowLane
  let handles = Handles()
  private let onReady: @Sendable () -> Void
  /// Nothing in the fast lane waits, so nothing there is ever cancelled.
  private let fastCall: Call

  init(_ fileSystem: FileSystem, _ options: MountOptions, onReady: @escaping @Sendable () -> Void) {
    self.fileSystem = fileSystem
    self.onReady = onReady
    slowLane = SlowLane(
      brief: options.briefWorkers, slow: options.slowWorkers, timeout: options.timeout)
    fastCall = Call(timeout: options.timeout)
  }

  /// The server of a session, from what libfuse was given.
  static func from(_ context: UnsafeMutableRawPointer?) -> Server? {
    context.map { Unmanaged<Server>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Serves a request here and now, or in a lane that may take longer.
  ///
  /// - Parameters:
  ///   - pointer: libfuse's request.
  ///   - operation: holds copies of its arguments, which are gone once the callback returns.
  static func serve(
    _ pointer: fuse_req_t?,
    _ operation: @escaping @Sendable (Server, Caller) throws(Failure) -> Reply
  ) {
    serve(pointer) { server in
      let work: Operation = { caller throws(Failure) in try operation(server, caller) }
      return (work, { work })
    }
  }

  /// Serves a request with bytes that are gone once the callback returns: in the fast lane from
  /// where they are, in the slow one from a copy.
  static func serve(
    _ pointer: fuse_req_t?, _ bytes: UnsafePointer<CChar>?, _ count: Int,
    _ operation:
      @escaping @Sendable (Server, UnsafeRawBufferPointer, Caller) throws(Failure) -> Reply
  ) {
    let address = UInt(bitPattern: bytes)
    serve(pointer) { server in
      (
        { caller throws(Failure) in
          let start = UnsafeRawPointer(bitPattern: address)
          return try operation(server, UnsafeRawBufferPointer(start: start, count: count), caller)
        },
        {
          let copy = Array(UnsafeRawBufferPointer(start: bytes, count: count))
          return { caller throws(Failure) in
            try copy.withUnsafeBufferPointer { (bytes) throws(Failure) in
              try operation(server, UnsafeRawBufferPointer(bytes), caller)
            }
          }
        }
      )
    }
  }

  /// - Parameter operation: gives what to do in the fast lane, and what makes that which is to be
  ///   done in the slow one, while the callback has not returned.
  private static func serve(
    _ pointer: fuse_req_t?, _ operation: (Server) -> (fast: Operation, slow: () -> Operation)
  ) {
    guard let pointer else { return }
    guard let server = from(fuse_req_userdata(pointer)) else {
      fuse_reply_err(pointer, EIO)
      return
    }
    let request = Request(pointer)
    let caller = Caller(processID: request.processID, lane: .fast, call: server.fastCall)
    let (fast, slow) = operation(server)
    switch request.serve(caller, fast, server) {
    case .answered: break
    case .moves(let waiting, let lane): server.slowLane.accept(waiting, slow(), server, on: lane)
    }
  }

  /// The kernel's interrupt of a request in the slow lane, by its number there.
  static func interrupted(_ pointer: fuse_req_t?, _ number: UnsafeMutableRawPointer?) {
    guard let pointer, let server = from(fuse_req_userdata(pointer)) else { return }
    server.slowLane.interrupt(UInt(bitPattern: number))
  }

  /// Settles with the kernel what it may do; the first request of a session.
  func negotiate(_ connection: inout fuse_conn_info) {
    func want(_ capability: Int32, _ wanted: Bool) {
      let bit = UInt32(bitPattern: capability)
      if wanted {
        connection.want |= connection.capable & bit
      } else {
        connection.want &= ~bit
      }
    }
    want(FUSE_CAP_READDIRPLUS, true)
    want(FUSE_CAP_READDIRPLUS_AUTO, true)
    want(FUSE_CAP_PARALLEL_DIROPS, true)
    want(FUSE_CAP_ASYNC_READ, true)
    // With asynchronous direct I/O not even SIGKILL frees a reader that waits.
    want(FUSE_CAP_ASYNC_DIO, false)
    // Copying is faster than splicing at the request sizes used here, at half the processor time.
    want(FUSE_CAP_SPLICE_READ, false)
    want(FUSE_CAP_SPLICE_WRITE, false)
    want(FUSE_CAP_SPLICE_MOVE, false)
    // With it the kernel keeps the size and times that it has of a file, whatever is said of it
    // (fuse_change_attributes in fs/fuse/inode.c): of 3,000 bytes that another writer stored over
    // six, programs were given six. Small writes would gain (1 KiB at a time: an eighth of the
    // time), copying and transactions would lose a fifth (bench/results.txt).
    want(FUSE_CAP_WRITEBACK_CACHE, false)
    // An open that empties a file does so in one step.
    want(FUSE_CAP_ATOMIC_O_TRUNC, true)
    connection.max_read = MountOptions.maxRead
    connection.max_write = MountOptions.maxWrite
    connection.max_readahead = MountOptions.maxRead
    // Reads count as background. With the default of 12, a dozen readers that wait stop every other
    // one; a few hundred have two reads each under way.
    connection.max_background = 4096
    connection.congestion_threshold = 3072
    connection.time_gran = 1
    onReady()
  }
}
