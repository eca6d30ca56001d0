import Glibc
import Platform

/// The signals that the thread of a session waits for (sigtimedwait(2)).
struct SessionSignals {
  /// Sent by our own threads: something has changed, look again.
  static let wake = SIGUSR1

  private var mask = sigset_t()
  private var before = sigset_t()

  /// Blocks the signals on this thread, so that they stay pending until asked for.
  init() {
    sigemptyset(&mask)
    for signal in [SIGINT, SIGTERM, SIGHUP, Self.wake] { sigaddset(&mask, signal) }
    pthread_sigmask(SIG_BLOCK, &mask, &before)
  }

  /// The next signal; nil when none came in time.
  func next(within time: Span) -> CInt? {
    var mask = mask
    var timeout = Instant(nanoseconds: time.nanoseconds).timespec
    let signal = sigtimedwait(&mask, nil, &timeout)
    return signal > 0 ? signal : nil
  }

  /// Gives the thread its old mask back; wake-ups that came too late are dropped.
  func restore() {
    var wakes = sigset_t()
    sigemptyset(&wakes)
    sigaddset(&wakes, Self.wake)
    var none = timespec()
    while sigtimedwait(&wakes, nil, &none) > 0 {}
    var before = before
    pthread_sigmask(SIG_SETMASK, &before, nil)
  }
}
