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
    /// What could not be written for want of room, and was not written or cut off since; then the
    /// bytes are not those that the writer meant.
    var missing: Range<Int64>?
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
      if error == .noSpace || error == .overQuota {
        shape.withLock { shape in
          let known = shape.missing ?? offset..<end
          shape.missing =
            min(known.lowerBound, offset)..<max(known.upperBound, end)
        }
      }
      try cutBack()
      throw error
    }
    directory.note(.write("\(id).data", at: offset, Array(bytes)))
    shape.withLock { shape in
      shape.size = max(shape.size, end)
      shape.fill(offset..<end)
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
      shape.cut(to: size)
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

extension Content.Shape {
  /// Bytes were written: they are missing no more.
  fileprivate mutating func fill(_ written: Range<Int64>) {
    guard let missing, written.overlaps(missing) else { return }
    let first = written.lowerBound <= missing.lowerBound ? written.upperBound : missing.lowerBound
    let last = written.upperBound >= missing.upperBound ? written.lowerBound : missing.upperBound
    self.missing = first < last ? first..<last : nil
  }

  /// The file ends earlier: what would have come behind is missed no more.
  fileprivate mutating func cut(to size: Int64) {
    guard let missing else { return }
    self.missing =
      missing.lowerBound < size
      ? missing.lowerBound..<min(missing.upperBound, size) : nil
  }
}
