package import BucketStore
package import Platform

/// An object that is open: one version of it, from the first read to the last.
///
/// It keeps that version when the copy is replaced, dropped or evicted meanwhile. Guarded by its
/// own lock, which is never held while waiting.
package final class OpenFile: Sendable {
  /// What is read.
  package let object: ObjectName
  /// Bytes.
  package let size: Int64
  /// What the store said of this version.
  package let info: ObjectInfo
  /// When the bytes were asked for.
  package let fetched: Timestamp
  /// Names these bytes within this run of the program: equal numbers, equal bytes.
  package let version: UInt64

  let source: Source
  private let cache: FileCache
  private let state: Locked<State>

  enum Source {
    case copy(KeptFile)
    case download(Download)
  }

  private struct State {
    var isClosed = false
    var doubt: StoreError?
    /// Where the next read begins if the file is read from front to back.
    var next: Int64 = 0
    /// How many bytes were read in order.
    var run: Int64 = 0
    /// Bytes that could not be kept in a file: the last range that was asked for.
    var window: [UInt8] = []
    var windowStart: Int64 = 0
  }

  init(_ object: ObjectName, _ copy: Copy, _ file: KeptFile, in cache: FileCache) {
    self.object = object
    self.cache = cache
    size = copy.facts.size
    info = copy.facts.info(of: object)
    fetched = copy.fetched
    version = copy.content
    source = .copy(file)
    state = Locked(State())
  }

  /// Of a download whose size is known, and which counts this file as a reader.
  init(_ download: Download, in cache: FileCache) {
    object = download.object
    self.cache = cache
    let (facts, fetched) = download.state.withLock { ($0.facts, $0.fetched) }
    size = facts?.size ?? 0
    info = (facts ?? ObjectFacts(size: 0, tag: nil, modified: nil)).info(of: download.object)
    self.fetched = fetched
    version = download.content
    source = .download(download)
    state = Locked(State())
  }

  deinit {
    close()
  }

  /// Why the store did not say that this version is the current one; nil when it did.
  package var doubt: StoreError? { state.withLock { $0.doubt } }

  func note(doubt: StoreError) { state.withLock { $0.doubt = doubt } }

  /// Reads what can be read without waiting.
  ///
  /// - Returns: how many bytes were read, fewer than the buffer holds only at the end; nil when
  ///   the bytes are not here yet.
  /// - Throws: `StoreError` when they never will be.
  package func readAvailable(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64)
    throws(StoreError) -> Int?
  {
    guard let range = range(buffer.count, at: offset) else { return 0 }
    switch source {
    case .copy(let kept): return try read(kept.file, buffer, range)
    case .download(let download):
      switch try download.available(range, ahead: pace(range)) {
      case .file(let part): return try read(part.file, buffer, range)
      case .direct: return readWindow(buffer, range)
      case nil: return nil
      }
    }
  }

  /// Reads, and waits for the bytes of this range alone.
  ///
  /// - Returns: how many bytes were read, fewer than the buffer holds only at the end.
  /// - Throws: `StoreError`: why they do not come; `damaged` when they are not what they should be.
  package func read(
    _ buffer: UnsafeMutableRawBufferPointer, at offset: Int64, _ call: Call
  ) throws(StoreError) -> Int {
    guard let range = range(buffer.count, at: offset) else { return 0 }
    switch source {
    case .copy(let kept): return try read(kept.file, buffer, range)
    case .download(let download):
      switch try download.require(range, ahead: pace(range), call) {
      case .file(let part): return try read(part.file, buffer, range)
      case .direct(let facts):
        if let count = readWindow(buffer, range) { return count }
        return try fetchWindow(buffer, range, facts, call)
      }
    }
  }

  /// Waits until all bytes are here, and the copy is in place.
  func waitUntilKept(_ call: Call) throws(StoreError) {
    guard case .download(let download) = source else { return }
    var position: Int64 = 0
    while position < size {
      let end = min(size, position + max(1, cache.options.partSize))
      let supply = try download.require(
        position..<end, ahead: 8 * cache.options.partSize, call)
      if case .direct = supply {
        throw StoreError(.noRoom, "\(object): no copy can be kept, see the log")
      }
      position = end
    }
    try download.waitUntilSettled(call)
  }

  /// Lets go of it. Further reads still work as long as somebody calls them.
  package func close() {
    let isFirst = state.withLock { state -> Bool in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    guard isFirst else { return }
    switch source {
    case .copy: cache.closed(object)
    case .download(let download): download.leave()
    }
  }

  private func range(_ count: Int, at offset: Int64) -> Range<Int64>? {
    guard offset >= 0, offset < size, count > 0 else { return nil }
    return offset..<(offset + min(Int64(count), size - offset))
  }

  /// How far ahead a reader is served: as many bytes as it has read in order.
  private func pace(_ range: Range<Int64>) -> Int64 {
    let most = 8 * cache.options.partSize
    let unit = cache.partUnit
    return state.withLock { state -> Int64 in
      // The kernel's own read-ahead may turn neighbouring requests round.
      let isInOrder = abs(range.lowerBound - state.next) <= unit / 2
      let count = range.upperBound - range.lowerBound
      state.run = isInOrder ? state.run &+ count : count
      state.next = isInOrder ? max(state.next, range.upperBound) : range.upperBound
      return min(most, max(unit, state.run))
    }
  }

  private func read(
    _ file: borrowing File, _ buffer: UnsafeMutableRawBufferPointer, _ range: Range<Int64>
  ) throws(StoreError) -> Int {
    let count = Int(range.upperBound - range.lowerBound)
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
    do throws(Errno) {
      guard try file.read(part, at: range.lowerBound) == count else { throw .io }
      return count
    } catch {
      throw StoreError(.damaged, "\(object): cannot read the file in the cache: \(error)")
    }
  }
}

extension OpenFile {
  /// How many bytes are asked for at once where no file can be written.
  private static let windowSize: Int64 = 1 << 20

  private func readWindow(_ buffer: UnsafeMutableRawBufferPointer, _ range: Range<Int64>) -> Int? {
    state.withLock { state -> Int? in
      let start = range.lowerBound - state.windowStart
      let count = range.upperBound - range.lowerBound
      guard start >= 0, start + count <= Int64(state.window.count) else { return nil }
      state.window.withUnsafeBytes { window in
        buffer.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: window[Int(start)..<Int(start + count)]))
      }
      return Int(count)
    }
  }

  /// Asks the store for a range on the caller's own thread, and keeps it in memory: one mebibyte
  /// for each open file, however large the object is.
  private func fetchWindow(
    _ buffer: UnsafeMutableRawBufferPointer, _ range: Range<Int64>, _ facts: ObjectFacts,
    _ call: Call
  ) throws(StoreError) -> Int {
    let isSmall = facts.size <= Self.windowSize
    let start = isSmall ? 0 : range.lowerBound
    let end = isSmall ? facts.size : min(facts.size, max(range.upperBound, start + Self.windowSize))
    let wanted = start..<end
    let sink = WindowSink(facts, wanted)
    var request = GetRequest(object: object)
    if !isSmall { request.range = wanted }
    do throws(StoreError) {
      _ = try cache.store.get(request, into: sink, call)
    } catch {
      if !sink.isFull { throw sink.fault ?? error }
    }
    guard sink.isFull else {
      throw sink.fault ?? StoreError(.damaged, "\(object): the store sent less than asked")
    }
    let bytes = sink.bytes
    if isSmall, let expected = Checksum.md5(of: facts.tag),
      Digest.hex(.md5, of: bytes) != expected
    {
      throw StoreError(.damaged, "\(object): the bytes do not match the store's checksum")
    }
    state.withLock { state in
      state.window = bytes
      state.windowStart = start
    }
    let first = Int(range.lowerBound - start)
    let count = Int(range.upperBound - range.lowerBound)
    bytes.withUnsafeBytes { window in
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: window[first..<(first + count)]))
    }
    return count
  }
}

/// Takes one range of a version into memory.
private final class WindowSink: GetSink {
  private struct State {
    var position: Int64 = 0
    var bytes: [UInt8] = []
    var fault: StoreError?
  }

  private let facts: ObjectFacts
  private let wanted: Range<Int64>
  private let state = Locked(State())

  init(_ facts: ObjectFacts, _ wanted: Range<Int64>) {
    self.facts = facts
    self.wanted = wanted
  }

  var isFull: Bool {
    state.withLock {
      $0.fault == nil && Int64($0.bytes.count) == wanted.upperBound - wanted.lowerBound
    }
  }

  var bytes: [UInt8] { state.withLock { $0.bytes } }

  var fault: StoreError? { state.withLock { $0.fault } }

  func begin(_ head: ObjectHead) -> Bool {
    state.withLock { state -> Bool in
      guard facts.isSame(as: head) else {
        state.fault = StoreError(.damaged, "replaced in the store while it was being read")
        return false
      }
      state.position = head.range?.lowerBound ?? 0
      return state.position <= wanted.lowerBound
    }
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    state.withLock { state -> Bool in
      let skipped = max(0, wanted.lowerBound - state.position)
      state.position &+= Int64(bytes.count)
      guard skipped < Int64(bytes.count) else { return true }
      let room = Int(wanted.upperBound - wanted.lowerBound) - state.bytes.count
      state.bytes.append(contentsOf: bytes.dropFirst(Int(skipped)).prefix(room))
      return Int64(state.bytes.count) < wanted.upperBound - wanted.lowerBound
        || state.position <= wanted.upperBound
    }
  }
}

extension ObjectFacts {
  /// Whether an answer is of this version.
  ///
  /// Without a tag the time must say so; without either nothing does.
  func isSame(as head: ObjectHead) -> Bool {
    if let size = head.size, size != self.size { return false }
    if head.tag != nil || tag != nil { return EntityTag.areSame(head.tag, tag) }
    return head.modified != nil && head.modified == modified
  }

  func info(of object: ObjectName) -> ObjectInfo {
    ObjectInfo(
      key: object.key, size: size, tag: tag, version: version, modified: modified,
      contentType: contentType)
  }
}
