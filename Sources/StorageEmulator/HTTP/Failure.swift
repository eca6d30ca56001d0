import Platform

/// Why a request gets no ordinary answer.
enum Failure: Error {
  /// The server refuses, in its own words.
  case refused(Refusal)
  /// The client is gone, or a fault ended the connection: nothing more can be sent.
  case disconnected
  /// The disk of the machine failed.
  case disk(Errno)
}
