import BucketStore
import Platform

/// A pending file's bytes, as a store reads them in a try.
final class ContentSource: PutSource {
  private let content: Content
  /// Bytes.
  private let size: Int64
  private let flight: Flight

  init(_ content: Content, size: Int64, _ flight: Flight) {
    self.content = content
    self.size = size
    self.flight = flight
  }

  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    let count = try content.file.read(buffer, at: offset)
    if offset + Int64(count) >= size, !flight.beginLast() { throw .interrupted }
    return count
  }

  /// Only looks.
  func readAhead(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    try content.file.read(buffer, at: offset)
  }
}
