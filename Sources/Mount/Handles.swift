import CFuse
import FileSystem
import Platform

/// What the kernel holds between open and release.
protocol Handle: AnyObject, Sendable {
  func close()
}

extension FileHandle: Handle {}
extension DirectoryHandle: Handle {}

/// The open files and folders of a mount, which the kernel names by number.
///
/// The number is the object's address, so that a read finds its file without a look-up; this table
/// keeps the object alive until its release. What is still open when the mount ends will never be
/// released by the kernel, and is closed here.
final class Handles: Sendable {
  private let table = Locked<[UInt64: any Handle]>([:])

  /// Keeps an object, and gives its number.
  func add<Object: Handle>(_ object: Object) -> UInt64 {
    let number = UInt64(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()))
    table.withLock { $0[number] = object }
    return number
  }

  /// Lets go of an object.
  func remove(_ number: UInt64) -> (any Handle)? {
    table.withLock { $0.removeValue(forKey: number) }
  }

  func closeAll() {
    let open = table.withLock { table in
      defer { table = [:] }
      return Array(table.values)
    }
    for handle in open { handle.close() }
  }

  /// The object of a request's handle; nil when the request has none.
  ///
  /// The kernel sends no request on a handle that it has released.
  static func object<Object: Handle>(
    _ info: UnsafePointer<fuse_file_info>?, as type: Object.Type
  ) -> Object? {
    guard let info, let pointer = UnsafeRawPointer(bitPattern: UInt(info.pointee.fh)) else {
      return nil
    }
    return Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue()
  }
}
