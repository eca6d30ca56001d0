import CFuse
import FileSystem
import Glibc
import Platform

/// An answer to the kernel, as an operation returns it.
enum Reply {
  /// It is done, and there is nothing to tell.
  case done
  /// A name led to this entry, whose lookup has been counted.
  case entry(Entry)
  /// The name leads nowhere, and for so long the kernel need not ask again.
  case missing(timeout: Span)
  case attributes(Entry)
  case file(FileHandle, flags: CInt)
  /// A file was made and opened; its lookup has been counted.
  case created(Entry, FileHandle, flags: CInt)
  /// How many bytes were written.
  case written(Int)
  case directory(DirectoryHandle)
  /// Bytes in this thread's scratch memory, sent before the thread serves anything else.
  case bytes(UnsafeRawBufferPointer)
  /// Directory entries likewise, with the inodes whose lookup has been counted.
  case entries(UnsafeRawBufferPointer, counted: [UInt64])
  /// How many bytes an attribute's value has.
  case length(Int)
  case statistics(Statistics)

  /// - Returns: 0, or the negative error number with which the kernel refused the answer.
  func send(_ request: fuse_req_t, _ handles: Handles) -> CInt {
    switch self {
    case .done: fuse_reply_err(request, 0)
    case .entry(let entry):
      withUnsafePointer(to: entry.parameters) { fuse_reply_entry(request, $0) }
    case .missing(let timeout):
      if timeout > .zero {
        withUnsafePointer(to: Self.negative(timeout)) { fuse_reply_entry(request, $0) }
      } else {
        fuse_reply_err(request, ENOENT)
      }
    case .attributes(let entry):
      withUnsafePointer(to: entry.attributes.status) {
        fuse_reply_attr(request, $0, entry.attributesTimeout.seconds)
      }
    case .file(let handle, let flags):
      Self.open(request, handle, handles) { info in
        info.flags = flags
        info.keep_cache = handle.keepsCache ? 1 : 0
        // Nothing was written, so there is nothing to flush: saves a request at every close.
        info.noflush = flags & O_ACCMODE == O_RDONLY ? 1 : 0
      }
    case .created(let entry, let handle, let flags):
      withUnsafePointer(to: entry.parameters) { parameters in
        Self.open(request, handle, handles, as: parameters) { $0.flags = flags }
      }
    case .written(let count): fuse_reply_write(request, count)
    case .directory(let handle): Self.open(request, handle, handles) { _ in }
    case .bytes(let bytes), .entries(let bytes, _):
      fuse_reply_buf(
        request, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    case .length(let count): fuse_reply_xattr(request, count)
    case .statistics(let statistics):
      withUnsafePointer(to: statistics.status) { fuse_reply_statfs(request, $0) }
    }
  }

  /// Takes back what the kernel did not get: it will neither forget nor release it.
  func withdraw(from fileSystem: FileSystem) {
    switch self {
    case .entry(let entry): fileSystem.forget(entry.inode, count: 1)
    case .entries(_, let counted):
      for inode in counted { fileSystem.forget(inode, count: 1) }
    case .file(let handle, _): handle.close()
    case .created(let entry, let handle, _):
      handle.close()
      fileSystem.forget(entry.inode, count: 1)
    case .directory(let handle): handle.close()
    case .done, .missing, .attributes, .bytes, .written, .length, .statistics: break
    }
  }

  /// An answer without an inode, which the kernel keeps as "no such name".
  private static func negative(_ timeout: Span) -> fuse_entry_param {
    var parameters = fuse_entry_param()
    parameters.entry_timeout = timeout.seconds
    return parameters
  }

  /// Hands an object to the kernel by its number; nobody holds it when the kernel refuses.
  ///
  /// - Parameter entry: for a file that was made.
  private static func open<Object: Handle>(
    _ request: fuse_req_t, _ object: Object, _ handles: Handles,
    as entry: UnsafePointer<fuse_entry_param>? = nil, _ set: (inout fuse_file_info) -> Void
  ) -> CInt {
    var info = fuse_file_info()
    set(&info)
    info.fh = handles.add(object)
    let code =
      if let entry { fuse_reply_create(request, entry, &info) } else {
        fuse_reply_open(request, &info)
      }
    if code != 0 { _ = handles.remove(info.fh) }
    return code
  }
}
