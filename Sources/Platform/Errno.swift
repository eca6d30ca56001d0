import Glibc

/// An error number of the operating system, thrown by every wrapper of a system call.
///
/// Follows errno(3). A struct over the C value, so that a number this file does not name is kept.
package struct Errno: Error, Hashable, Sendable, CustomStringConvertible {
  /// The value of `errno`, always positive.
  package let code: CInt

  package init(_ code: CInt) {
    self.code = code
  }

  /// What the last failed call on this thread left in `errno`. Read it straight after the call.
  package static var last: Errno { Errno(Glibc.errno) }

  /// The sentence of strerror(3), such as "No such file or directory".
  package var description: String {
    var buffer = [CChar](repeating: 0, count: 128)
    guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  package static let again = Errno(EAGAIN)
  package static let badHandle = Errno(EBADF)
  package static let busy = Errno(EBUSY)
  package static let connectionAborted = Errno(ECONNABORTED)
  package static let crossDevice = Errno(EXDEV)
  package static let exists = Errno(EEXIST)
  package static let fileTooLarge = Errno(EFBIG)
  package static let illegalSequence = Errno(EILSEQ)
  package static let interrupted = Errno(EINTR)
  package static let invalid = Errno(EINVAL)
  package static let io = Errno(EIO)
  package static let isDirectory = Errno(EISDIR)
  package static let loop = Errno(ELOOP)
  package static let nameTooLong = Errno(ENAMETOOLONG)
  package static let networkDown = Errno(ENETDOWN)
  package static let networkUnreachable = Errno(ENETUNREACH)
  package static let noAttribute = Errno(ENODATA)
  package static let noEntry = Errno(ENOENT)
  package static let noSpace = Errno(ENOSPC)
  package static let notConnected = Errno(ENOTCONN)
  package static let notDirectory = Errno(ENOTDIR)
  package static let notEmpty = Errno(ENOTEMPTY)
  package static let notImplemented = Errno(ENOSYS)
  package static let notPermitted = Errno(EPERM)
  package static let notSupported = Errno(EOPNOTSUPP)
  package static let overQuota = Errno(EDQUOT)
  package static let permission = Errno(EACCES)
  package static let range = Errno(ERANGE)
  package static let readOnly = Errno(EROFS)
  package static let stale = Errno(ESTALE)
  package static let timedOut = Errno(ETIMEDOUT)
}

extension Errno {
  /// Whether there is no place for anything: a full disk, a quota that is used up, a disk that can
  /// only be read.
  package var isNoPlace: Bool { [.noSpace, .overQuota, .readOnly].contains(self) }
}

/// Runs a call that reports failure by -1, again for as long as a signal interrupts it.
///
/// - Throws: `Errno`, what the call left in `errno`.
@discardableResult
package func check<Value: SignedInteger>(_ call: () -> Value) throws(Errno) -> Value {
  while true {
    let result = call()
    if result != -1 { return result }
    let error = Errno.last
    if error != .interrupted { throw error }
  }
}
