import BucketStore
import FileCache
import Glibc
import Platform

extension FileSystem {
  /// Opens a file for reading (FUSE_OPEN).
  ///
  /// ESTALE means that the object is no longer what the kernel was told: it looks the name up anew
  /// and opens it again by itself (path_openat in fs/namei.c), so that size and bytes agree.
  /// - Parameter flags: those of open(2).
  /// - Throws: `Failure`; EISDIR, EROFS, ESTALE, or the store's failure when no copy is kept.
  package func open(_ inode: UInt64, flags: CInt, _ caller: Caller) throws(Failure) -> FileHandle {
    guard case .object(let object) = try node(inode).place else {
      throw Failure(.isDirectory, "inode \(inode) is a folder")
    }
    guard flags & O_ACCMODE == O_RDONLY, flags & O_TRUNC == 0 else {
      throw Failure(.readOnly, "\(object): the mount is read-only")
    }
    guard caller.lane == .slow else { throw .mustWait }
    let info: ObjectInfo
    do throws(StoreError) {
      info = try store.info(object, caller.call)
    } catch {
      throw Failure(error, object.description)
    }
    tree.withLock { $0.opened(inode) }
    return FileHandle(
      inode: inode, object: object, size: info.size ?? 0, keepsCache: false, bypassesCache: false,
      onClose: { [tree] in tree.withLock { $0.closed(inode) } })
  }

  /// Reads from an open file (FUSE_READ) until the buffer is full or the file ends.
  ///
  /// - Returns: how many bytes were read; fewer than asked only at the end.
  /// - Throws: `Failure`; EIO for bytes that are damaged, EINTR when the caller was interrupted.
  package func read(
    _ handle: FileHandle, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64,
    _ caller: Caller
  ) throws(Failure) -> Int {
    guard offset >= 0 else { throw Failure(.invalid, "\(handle.object): offset below zero") }
    let end = min(offset.addingReportingOverflow(Int64(buffer.count)).partialValue, handle.size)
    guard offset < end else { return 0 }
    guard caller.lane == .slow else { throw .mustWait }
    let sink = RangeSink()
    do throws(StoreError) {
      _ = try store.get(
        GetRequest(object: handle.object, range: offset..<end), into: sink, caller.call)
    } catch {
      throw Failure(error, handle.object.description)
    }
    return sink.copy(offset..<end, into: buffer)
  }
}

/// Keeps the bytes of one range in memory.
private final class RangeSink: GetSink {
  private let state = Locked((start: Int64(0), bytes: [UInt8]()))

  func begin(_ head: ObjectHead) -> Bool {
    state.withLock { $0.start = head.range?.lowerBound ?? 0 }
    return true
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let copy = Array(bytes)
    state.withLock { $0.bytes += copy }
    return true
  }

  func copy(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let (start, bytes) = state.withLock { $0 }
    guard range.lowerBound >= start else { return 0 }
    let slice = bytes.dropFirst(Int(range.lowerBound - start)).prefix(range.count)
    buffer.copyBytes(from: slice)
    return slice.count
  }
}
