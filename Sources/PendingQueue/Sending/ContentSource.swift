import BucketStore
import Platform

/// A pending file's bytes, as a store reads them.
final class ContentSource: PutSource {
  private let content: Content

  init(_ content: Content) {
    self.content = content
  }

  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    try content.file.read(buffer, at: offset)
  }
}
