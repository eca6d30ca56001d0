import CFuse
import FileSystem
import Glibc
import Platform

/// What an operation does once its arguments have been copied; may run again, first in the fast
/// lane, then in one that may take longer.
typealias Operation = @Sendable (Caller) throws(Failure) -> Reply

/// A request of the kernel, which is owed exactly one answer.
///
/// Operations return a reply or throw; only this type sends, and sending consumes it. Dropping one
/// unanswered is a mistake that the debug build stops at and the release build answers with EIO.
///
/// `@unchecked Sendable`: libfuse lets any thread answer a request, and there is one owner.
struct Request: ~Copyable, @unchecked Sendable {
  private let pointer: fuse_req_t

  init(_ pointer: fuse_req_t) {
    self.pointer = pointer
  }

  /// The asking process; 0 when the kernel asks by itself.
  var processID: Int32 { fuse_req_ctx(pointer)?.pointee.pid ?? 0 }

  /// What became of a request that was served.
  enum Service: ~Copyable {
    case answered
    /// It is unanswered, since the operation takes longer than it may where it ran.
    case moves(Request, to: Lane)
  }

  /// Runs an operation and sends what it gives.
  consuming func serve(_ caller: Caller, _ operation: Operation, _ server: Server) -> Service {
    let reply: Reply
    do throws(Failure) {
      reply = try operation(caller)
    } catch {
      if let lane = error.lane, lane > caller.lane { return .moves(self, to: lane) }
      fail(caller.call.cancellation.isCancelled ? Failure(.interrupted, error.message) : error)
      return .answered
    }
    send(reply, server)
    return .answered
  }

  /// Answers with an error number, and logs the failure once.
  consuming func fail(_ failure: Failure) {
    switch failure.level {
    case .debug: Log.debug(failure.message)
    case .info: Log.info(failure.message)
    case .warning: Log.warning(failure.message)
    case .error: Log.error(failure.message)
    }
    if failure.lane != nil { Log.error("an operation would not wait where it may") }
    fuse_reply_err(pointer, failure.lane == nil ? failure.errno.code : EIO)
    discard self
  }

  /// Answers nothing at all: the kernel expects no answer to "forget".
  consuming func end() {
    fuse_reply_none(pointer)
    discard self
  }

  /// Names the number that the kernel's interrupt of this request brings along.
  ///
  /// A number, not a pointer: libfuse may call back when another thread has answered already.
  borrowing func onInterrupt(
    _ id: UInt, _ callback: @convention(c) (fuse_req_t?, UnsafeMutableRawPointer?) -> Void
  ) {
    fuse_req_interrupt_func(pointer, callback, UnsafeMutableRawPointer(bitPattern: id))
  }

  private consuming func send(_ reply: Reply, _ server: Server) {
    // ENOENT from the kernel means that the asker was interrupted and is gone.
    if reply.send(pointer, server.handles) != 0 { reply.withdraw(from: server.fileSystem) }
    discard self
  }

  deinit {
    assertionFailure("a request was dropped unanswered")
    fuse_reply_err(pointer, EIO)
  }
}
