import Glibc
package import Platform

/// A plain directory as a store: its sub-directories are the buckets, the files below them the
/// objects.
///
/// The smallest store, and the contract's reference. What is not a regular file (symlinks,
/// sockets, devices) is not an object; directories are seen only through the files in them. What
/// is mounted beneath is not seen: it may be this very store, which would wait for itself.
/// The tag is made of the file's inode, size and change time, so that any write gives a new one.
package final class DirectoryStore: BucketStore {
  package let capabilities: StoreCapabilities
  package let session = SessionState.keyOnly

  let root: Directory

  /// - Parameters:
  ///   - path: the directory; it must exist.
  ///   - pageSize: the most keys on one page of a listing.
  /// - Throws: `Errno` of opening the directory.
  package init(_ path: String, pageSize: Int = 1000) throws(Errno) {
    capabilities = StoreCapabilities(flatListing: true, pageSize: max(pageSize, 1))
    root = try Directory(path, stayingOnMount: true)
  }

  package func buckets(_ call: Call) throws(StoreError) -> [BucketInfo] {
    do throws(Errno) {
      let folder = try root.open(".", O_RDONLY | O_DIRECTORY)
      var buckets: [BucketInfo] = []
      for entry in try folder.shownEntries().sorted(by: { $0.name < $1.name })
      where entry.kind == .folder && !isMountPoint(entry.name) {
        buckets.append(BucketInfo(name: entry.name, created: nil))
      }
      return buckets
    } catch {
      throw Self.error(error, "the directory of buckets")
    }
  }

  /// Whether something is mounted on a bucket's folder; a folder that cannot be read is shown.
  private func isMountPoint(_ bucket: ByteString) -> Bool {
    do throws(Errno) {
      _ = try root.open(bucket, O_RDONLY | O_DIRECTORY)
      return false
    } catch {
      return error == .crossDevice
    }
  }

  package func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool {
    guard Self.isSegment(bucket) else { return false }
    do throws(Errno) {
      _ = try root.open(bucket, O_RDONLY | O_DIRECTORY)
      return true
    } catch .noEntry, .notDirectory, .loop, .crossDevice {
      return false
    } catch {
      throw Self.error(error, "bucket \(bucket)")
    }
  }

  package func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo {
    let file = try open(object)
    do throws(Errno) {
      return try DirectoryFacts.info(of: file, key: object.key)
    } catch {
      throw Self.error(error, "\(object)")
    }
  }

  package func get(_ request: GetRequest, into sink: any GetSink, _ call: Call)
    throws(StoreError) -> GetOutcome
  {
    let file = try open(request.object)
    do throws(Errno) {
      let facts = DirectoryFacts(try file.status())
      if let tag = request.unlessTag, tag == facts.tag { return .notModified }
      let range = request.range ?? 0..<facts.size
      guard range.lowerBound >= 0, range.lowerBound < facts.size || range.isEmpty
      else { throw Errno.range }
      let served = range.lowerBound..<max(range.lowerBound, min(range.upperBound, facts.size))
      let head = ObjectHead(
        size: facts.size, range: served, tag: facts.tag, modified: facts.modified)
      try Self.send(file, head, served, to: sink, call)
      guard DirectoryFacts(try file.status()).tag == facts.tag else { throw Errno.stale }
      return .complete(head)
    } catch .stale {
      throw StoreError(.conflict, "\(request.object): was written while it was read")
    } catch .range {
      throw StoreError(.damaged, "\(request.object): not the bytes that were asked for")
    } catch {
      throw Self.error(error, "\(request.object)")
    }
  }

  /// Hands a range of a file to a sink.
  ///
  /// - Throws: `Errno`: ERANGE when the file is shorter than its status said, EINTR when the sink
  ///   declined or the call was cancelled.
  private static func send(
    _ file: borrowing File, _ head: ObjectHead, _ range: Range<Int64>, to sink: any GetSink,
    _ call: Call
  ) throws(Errno) {
    guard sink.begin(head) else { throw .interrupted }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      if call.cancellation.isCancelled { throw .interrupted }
      let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
      let count = try file.read(
        UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
      guard count > 0 else { throw .range }
      guard sink.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) else {
        throw .interrupted
      }
      offset += Int64(count)
    }
  }

  package func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage {
    var page = DirectoryPage(request, limit: capabilities.pageSize)
    guard Self.isSegment(request.bucket) else { return page.finish() }
    do throws(Errno) {
      try DirectoryWalk(root: root, request: request, call: call).collect(
        into: &page, below: page.startFolder)
    } catch .noEntry, .notDirectory, .loop, .crossDevice {
      // No such bucket, or no such folder of this store: nothing begins with the prefix.
    } catch {
      throw Self.error(error, "the listing of \(request.bucket)/\(request.prefix)")
    }
    return page.finish()
  }

  func open(_ object: ObjectName) throws(StoreError) -> File {
    guard Self.isSegment(object.bucket),
      object.key.split(at: ByteString.slash).allSatisfy(Self.isSegment)
    else { throw StoreError(.notFound, "\(object): no such object") }
    do throws(Errno) {
      let file = try root.open(object.bucket + "/" + object.key, O_RDONLY | O_NONBLOCK)
      guard DirectoryFacts(try file.status()).kind == .file else { throw Errno.noEntry }
      return file
    } catch {
      throw Self.error(error, "\(object)")
    }
  }

  /// Whether a name can be one segment of a path here.
  static func isSegment(_ name: ByteString) -> Bool {
    !name.isEmpty && name != "." && name != ".." && !name.bytes.contains(0)
      && !name.bytes.contains(ByteString.slash) && !DirectoryDraft.isDraft(name)
  }

  static func error(_ error: Errno, _ what: String) -> StoreError {
    let kind: StoreError.Kind =
      switch error {
      case .noEntry, .notDirectory, .loop, .crossDevice, .nameTooLong, .isDirectory: .notFound
      case .permission, .notPermitted: .refused
      case .interrupted: .cancelled
      default: .server
      }
    return StoreError(kind, "\(what): \(error)")
  }
}
