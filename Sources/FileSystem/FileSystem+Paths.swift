package import BucketStore
import FileCache
package import Platform

extension FileSystem {
  /// The object that a path in the mount names, whether it exists or not. Never waits.
  ///
  /// - Parameter path: relative to the mount, or with a leading `/`.
  /// - Throws: `Failure`; EINVAL for a path with an empty segment, `.`, `..`, `\` or a control
  ///   character, EISDIR for the mount's root or a bucket, EILSEQ for a name that no key can hold.
  package func object(at path: ByteString) throws(Failure) -> ObjectName {
    var rest = path.split(at: ByteString.slash)
    if rest.count > 1, rest[0].isEmpty { rest.removeFirst() }
    guard let name = rest.popLast(), !(name.isEmpty && rest.isEmpty) else {
      throw Failure(.isDirectory, "\(path): is the mount's root")
    }
    var folder = options.root
    for segment in rest { folder = folder.folder(try segmentOfKey(segment, path)) }
    let last = try segmentOfKey(name, path)
    guard !folder.isBuckets else { throw Failure(.isDirectory, "\(path): is a bucket") }
    return folder.object(last)
  }

  /// The path at which an object is shown, relative to the mount: of the mark of an empty folder,
  /// the folder's.
  ///
  /// Nil when it lies outside of what is mounted, or its key cannot be a path. Never waits.
  package func shownPath(of object: ObjectName) -> ByteString? {
    let root = options.root
    guard root.isBuckets || root.bucket == object.bucket, object.key.hasPrefix(root.prefix) else {
      return nil
    }
    var below = object.key.dropFirst(root.prefix.count).split(at: ByteString.slash)
    if let last = below.last, listings.options.names.isMarker(last) { below.removeLast() }
    let segments = (root.isBuckets ? [object.bucket] : []) + below
    let names = segments.compactMap { listings.options.names.name(of: $0) }
    guard names.count == segments.count else { return nil }
    return ByteString(names.map(\.bytes).joined(separator: [ByteString.slash]))
  }

  private func segmentOfKey(_ name: ByteString, _ path: ByteString) throws(Failure) -> ByteString {
    guard KeyNames.isName(name) else {
      throw Failure(.invalid, "\(path): a path cannot hold the name \"\(name)\"")
    }
    guard name.count <= KeyNames.longestName else {
      throw Failure(.nameTooLong, "\(path): name is too long")
    }
    guard let segment = listings.options.names.segment(of: name) else {
      throw Failure(.illegalSequence, "\(path): the store can hold no such name")
    }
    return segment
  }

  /// How many keys of the kept listings cannot be shown. Reads the index.
  package var hiddenKeyCount: Int { listings.hiddenKeyCount }

  /// The keys of the kept listings that cannot be shown, in order, at most `limit`. Reads the
  /// index. A key that ends in `/` stands for all that begin with it.
  package func hiddenKeys(limit: Int) -> [ObjectName] { listings.hiddenKeys(limit: limit) }
}
