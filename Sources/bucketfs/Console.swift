import Glibc

/// Standard output and standard error.
enum Console {
  /// Writes to standard output.
  ///
  /// - Throws: `Complaint` when it cannot be written, so that no answer is lost unnoticed.
  static func print(_ text: String) throws(Complaint) {
    guard write(text, to: STDOUT_FILENO) else {
      throw Complaint(.failed, "the answer cannot be written to standard output")
    }
  }

  /// Writes a complaint or a remark to standard error; when that is closed there is nowhere else.
  static func remark(_ text: String) {
    _ = write(text, to: STDERR_FILENO)
  }

  private static func write(_ text: String, to descriptor: CInt) -> Bool {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        return false
      }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
