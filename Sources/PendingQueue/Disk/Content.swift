import CLinux
import Glibc
import Platform

/// The bytes of one file while somebody uses them: its open descriptor, size and time.
///
/// Shared by all handles and by the upload, and kept until the last lets go, whatever happens to
/// the name meanwhile.
final class Content: Sendable {
  struct Shape: Sendable {
    var size: Int64
    /// Of the last write, or as set since.
    var modified: Timestamp
    /// Whether the record does not tell of the last change yet.
    var isDirty: Bool
    /// Changes of the bytes that are under way: the bytes are not complete then.
    var changes = 0
    /// Whether the bytes were to be acknowledged while they were being changed: once they are not.
    var isFlushDue = false
  }

  let id: PendingID
  let file: File
  /// Changed only after the bytes were.
  let shape: Locked<Shape>
  private let directory: QueueDirectory

  init(_ id: PendingID, _ file: consuming File, _ shape: Shape, in directory: QueueDirectory) {
    self.id = id
    self.file = file
    self.shape = Locked(shape)
    self.directory = directory
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64, now: Timestamp) throws(Errno) {
    let (end, overflow) = offset.addingReportingOverflow(Int64(bytes.count))
    guard offset >= 0, !overflow else { throw .fileTooLarge }
    do throws(Errno) {
      try file.write(bytes, at: offset)
    } catch {
      try cutBack()
      throw error
    }
    directory.note(.write("\(id).data", at: offset, Array(bytes)))
    shape.withLock { shape in
      shape.size = max(shape.size, end)
      shape.modified = now
      shape.isDirty = true
    }
  }

  /// Takes back what a write that failed had appended: its caller was told that it failed.
  private func cutBack() throws(Errno) {
    let size = shape.withLock { $0.size }
    if Int64(try file.status().st_size) > size { try file.truncate(to: size) }
  }

  func truncate(to size: Int64, now: Timestamp) throws(Errno) {
    guard size >= 0 else { throw .invalid }
    try file.truncate(to: size)
    directory.note(.truncate("\(id).data", to: size))
    shape.withLock { shape in
      shape.size = size
      shape.modified = now
      shape.isDirty = true
    }
  }

  func allocate(_ mode: CInt, at offset: Int64, length: Int64, now: Timestamp) throws(Errno) {
    try check { bucketfs_fallocate(file.descriptor, mode, Int(offset), Int(length)) }
    let size = Int64(try file.status().st_size)
    shape.withLock { shape in
      shape.size = size
      shape.modified = now
      shape.isDirty = true
    }
  }

  /// Fills an empty content with the bytes of a descriptor, cloned or copied.
  func fill(from source: CInt, size: Int64) throws(Errno) {
    try file.fill(from: source, size: size) { bytes, offset in
      directory.note(.write("\(id).data", at: offset, Array(bytes)))
    }
    shape.withLock { $0.size = size }
  }
}
