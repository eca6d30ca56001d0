package import Platform

/// One open handle on a pending file.
///
/// Handles of one file share its bytes. A file that is removed or replaced stays readable and
/// writable through its handles, and is then forgotten. Safe from any thread.
package final class PendingFile: Sendable {
  package let id: PendingID

  init(id: PendingID) {
    self.id = id
  }

  /// The bytes' number as of now.
  package var size: Int64 { 0 }

  /// Reads at an offset; fewer bytes than asked only at the end.
  package func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
  {
    throw .notImplemented
  }

  /// Writes all bytes at an offset, past a hole where the file is shorter.
  ///
  /// - Throws: `Errno`; ENOSPC when the disk is full (what was written before is kept), EBADF for a
  ///   handle that was opened for reading.
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
    throw .notImplemented
  }

  package func truncate(to size: Int64) throws(Errno) { throw .notImplemented }

  /// Follows fallocate(2): reserves room, or punches a hole, by the mode's flags.
  package func allocate(_ mode: CInt, at offset: Int64, length: Int64) throws(Errno) {
    throw .notImplemented
  }

  /// Makes what was written durable on this device before it returns (fsync(2)).
  package func sync() throws(Errno) { throw .notImplemented }

  /// Acknowledges what was written, at each close(2): a kill loses nothing from here on, a power
  /// cut nothing from one second later on.
  ///
  /// - Throws: `Errno`, such as ENOSPC; the bytes are kept and the record is tried again.
  package func flush() throws(Errno) { throw .notImplemented }

  /// Lets the handle go. The last writer's makes the file ready to be sent.
  package func close() {}
}
