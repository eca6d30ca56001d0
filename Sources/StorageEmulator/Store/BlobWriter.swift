import Glibc
import Platform

/// Takes the bytes of an upload as they come and gives the blob, its size and its tag.
final class BlobWriter {
  /// The size of the parts in which the hosted server streams a body to its blob store.
  static let partSize = 16 << 20

  private let store: BlobStore
  private let tagsByPart: Bool
  private let partSize: Int
  private var held: [UInt8] = []
  private var blobFile: BlobFile?
  private var written = 0
  private var open: SharedFile?
  private var whole = Digest(.md5)
  private var part = Digest(.md5)
  private var partCount = 0
  private var partFill = 0
  private var partDigests: [UInt8] = []

  /// - Parameters:
  ///   - tagsByPart: whether a body of several parts gets the `-N` tag of a multi-part upload.
  ///   - partSize: the size of these parts in bytes.
  init(_ store: BlobStore, tagsByPart: Bool, partSize: Int = BlobWriter.partSize) {
    self.store = store
    self.tagsByPart = tagsByPart
    self.partSize = partSize
  }

  private(set) var count = 0

  func append(_ bytes: [UInt8]) throws(Failure) {
    count += bytes.count
    bytes.withUnsafeBytes { whole.update($0) }
    if tagsByPart { digestParts(bytes) }
    held += bytes
    if held.count > BlobStore.memoryLimit { try spill() }
  }

  /// Ends the body.
  ///
  /// - Returns: the blob and its tag, quotes included.
  func finish() throws(Failure) -> (blob: Blob, tag: String) {
    let blob: Blob
    do throws(Errno) {
      if open == nil {
        blob = try store.keep(held)
      } else {
        try spillToFile()
        guard let blobFile else { preconditionFailure("an open blob has a file") }
        blob = .file(blobFile)
      }
    } catch {
      throw .disk(error)
    }
    return (blob, tag())
  }

  private func tag() -> String {
    if tagsByPart, count > partSize {
      if partFill > 0 { endPart() }
      return "\"\(Digest.hex(.md5, of: partDigests))-\(partCount)\""
    }
    var finished = Digest(.md5)
    swap(&finished, &whole)
    return "\"\(finished.finish())\""
  }

  private func digestParts(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = rest.prefix(partSize - partFill)
      piece.withUnsafeBytes { part.update($0) }
      partFill += piece.count
      rest = rest.dropFirst(piece.count)
      if partFill == partSize { endPart() }
    }
  }

  private func endPart() {
    var finished = Digest(.md5)
    swap(&finished, &part)
    let digits = Array(finished.finish().utf8)
    for index in stride(from: 0, to: digits.count, by: 2) {
      let pair = String(decoding: digits[index...(index + 1)], as: UTF8.self)
      partDigests.append(UInt8(pair, radix: 16) ?? 0)
    }
    partCount += 1
    partFill = 0
  }

  private func spill() throws(Failure) {
    do throws(Errno) {
      try spillToFile()
    } catch {
      throw .disk(error)
    }
  }

  private func spillToFile() throws(Errno) {
    if open == nil {
      let (file, shared) = try store.newFile()
      blobFile = file
      open = shared
    }
    guard let open else { preconditionFailure("just opened") }
    let offset = Int64(written)
    try held.withUnsafeBufferPointer { (raw) throws(Errno) in
      try open.file.write(UnsafeRawBufferPointer(raw), at: offset)
    }
    written += held.count
    held = []
  }
}
