package import BucketStore
package import Platform

extension OpenFile {
  /// Whether all bytes are here: reading never waits.
  package var isCopy: Bool { if case .copy = source { true } else { false } }

  /// The descriptor of a file with all bytes of this version, checked where the store gives a
  /// checksum. Waits for those that are not here yet.
  ///
  /// It stays open, and the bytes what they are, for as long as this object is held.
  /// - Returns: nil where there are none, or no file can be kept: then `read` is the only way.
  /// - Throws: `StoreError`: why the bytes do not come.
  package func wholeDescriptor(_ call: Call) throws(StoreError) -> CInt? {
    switch source {
    case .copy(let kept): return kept.file.descriptor
    case .download(let download):
      do throws(StoreError) {
        try waitUntilKept(call)
      } catch {
        if error.kind == .noRoom { return nil }
        throw error
      }
      guard size > 0, case .file(let part) = try download.require(0..<size, ahead: 0, call) else {
        return nil
      }
      return part.file.descriptor
    }
  }
}
