import Glibc
import Platform

/// The bytes of one version of an object. They never change.
enum Blob: Sendable {
  case bytes([UInt8])
  case file(BlobFile)

  /// Exactly `count` bytes from an offset.
  ///
  /// - Throws: the refusal for a missing blob when its file is gone.
  func read(_ offset: Int, _ count: Int) throws(Failure) -> [UInt8] {
    switch self {
    case .bytes(let bytes):
      return Array(bytes[offset..<(offset + count)])
    case .file(let file):
      do throws(Errno) {
        return try file.read(offset, count)
      } catch {
        throw error == .noEntry ? .refused(.blobMissing) : .disk(error)
      }
    }
  }
}

/// A file that holds one blob and goes with the last object that refers to it.
final class BlobFile: Sendable {
  enum Place: Sendable {
    /// A file without a name.
    case open(SharedFile)
    /// A file of the data folder. It is removed unless the question is answered with true, as
    /// when the emulator stops and will start again on the same folder.
    case path(String, isKept: @Sendable () -> Bool)
  }

  private let place: Place

  init(_ place: Place) {
    self.place = place
  }

  deinit {
    if case .path(let path, let isKept) = place, !isKept() { unlink(path) }
  }

  /// The last part of its path; nil for a file without a name.
  var name: String? {
    guard case .path(let path, _) = place else { return nil }
    return path.split(separator: "/").last.map(String.init)
  }

  func read(_ offset: Int, _ count: Int) throws(Errno) -> [UInt8] {
    switch place {
    case .open(let shared): return try Self.read(shared.file, offset, count)
    case .path(let path, _): return try Self.read(File(path, O_RDONLY), offset, count)
    }
  }

  private static func read(
    _ file: borrowing File, _ offset: Int, _ count: Int
  ) throws(Errno) -> [UInt8] {
    let descriptor = file.descriptor
    var failure: Errno?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, got in
      while got < count {
        let done = pread(
          descriptor, buffer.baseAddress.map { $0 + got }, count - got, off_t(offset + got))
        if done < 0 && errno == EINTR { continue }
        guard done > 0 else {
          failure = done < 0 ? .last : .io
          return
        }
        got += done
      }
    }
    if let failure { throw failure }
    return bytes
  }
}
