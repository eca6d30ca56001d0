import CLinux
import Glibc

/// A named thread of our own, with every signal blocked: signals belong to the main thread.
package final class Thread: Sendable {
  private let done = Locked(false)

  /// Starts `body` on a new thread.
  ///
  /// - Parameters:
  ///   - name: shown by ps(1) and gdb(1); cut to 15 bytes (pthread_setname_np(3)).
  ///   - body: runs once; the thread ends with it.
  /// - Throws: `Errno` (EAGAIN) when the system refuses another thread.
  package init(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
    let done = self.done
    let start = Unmanaged.passRetained(
      Start(name: name) {
        body()
        done.withLock { $0 = true }
        done.wakeAll()
      })
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    defer { pthread_attr_destroy(&attributes) }
    var thread = pthread_t()
    let code = pthread_create(&thread, &attributes, { Start.run($0) }, start.toOpaque())
    guard code == 0 else {
      start.release()
      throw Errno(code)
    }
  }

  /// Waits until the body has returned.
  ///
  /// - Returns: false when the deadline passed first.
  @discardableResult
  package func join(until deadline: Instant? = nil) -> Bool {
    done.wait(until: deadline) { $0 ? true : nil } ?? false
  }
}

/// What a new thread is handed: its name and its work.
private final class Start: Sendable {
  let name: String
  let body: @Sendable () -> Void

  init(name: String, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }

  static func run(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    _ = bucketfs_setname(pthread_self(), String(start.name.prefix(15)))
    start.body()
    return nil
  }
}
