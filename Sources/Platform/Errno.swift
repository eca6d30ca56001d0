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

  /// EAGAIN: resource temporarily unavailable.
  package static let again = Errno(EAGAIN)
  /// EBADF: bad file descriptor.
  package static let badHandle = Errno(EBADF)
  /// EBUSY: device or resource busy.
  package static let busy = Errno(EBUSY)
  /// ECONNABORTED: software caused connection abort.
  package static let connectionAborted = Errno(ECONNABORTED)
  /// EXDEV: invalid cross-device link.
  package static let crossDevice = Errno(EXDEV)
  /// EEXIST: file exists.
  package static let exists = Errno(EEXIST)
  /// EFBIG: file too large.
  package static let fileTooLarge = Errno(EFBIG)
  /// EILSEQ: invalid or incomplete multibyte or wide character.
  package static let illegalSequence = Errno(EILSEQ)
  /// EINTR: interrupted system call.
  package static let interrupted = Errno(EINTR)
  /// EINVAL: invalid argument.
  package static let invalid = Errno(EINVAL)
  /// EIO: input or output error.
  package static let io = Errno(EIO)
  /// EISDIR: is a directory.
  package static let isDirectory = Errno(EISDIR)
  /// ELOOP: too many levels of symbolic links.
  package static let loop = Errno(ELOOP)
  /// ENAMETOOLONG: file name too long.
  package static let nameTooLong = Errno(ENAMETOOLONG)
  /// ENETDOWN: network is down.
  package static let networkDown = Errno(ENETDOWN)
  /// ENETUNREACH: network is unreachable.
  package static let networkUnreachable = Errno(ENETUNREACH)
  /// ENODATA: no data available.
  package static let noAttribute = Errno(ENODATA)
  /// ENOENT: no such file or directory.
  package static let noEntry = Errno(ENOENT)
  /// ENOSPC: no space left on device.
  package static let noSpace = Errno(ENOSPC)
  /// ENOTCONN: transport endpoint is not connected.
  package static let notConnected = Errno(ENOTCONN)
  /// ENOTDIR: not a directory.
  package static let notDirectory = Errno(ENOTDIR)
  /// ENOTEMPTY: directory not empty.
  package static let notEmpty = Errno(ENOTEMPTY)
  /// ENOSYS: function not implemented.
  package static let notImplemented = Errno(ENOSYS)
  /// EPERM: operation not permitted.
  package static let notPermitted = Errno(EPERM)
  /// EOPNOTSUPP: operation not supported.
  package static let notSupported = Errno(EOPNOTSUPP)
  /// EDQUOT: disk quota exceeded.
  package static let overQuota = Errno(EDQUOT)
  /// EACCES: permission denied.
  package static let permission = Errno(EACCES)
  /// ERANGE: numerical result out of range.
  package static let range = Errno(ERANGE)
  /// EROFS: read-only file system.
  package static let readOnly = Errno(EROFS)
  /// ESTALE: stale file handle.
  package static let stale = Errno(ESTALE)
  /// ETIMEDOUT: connection timed out.
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
