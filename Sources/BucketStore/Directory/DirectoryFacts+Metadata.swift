import Platform

/// What a writer said of an object, kept in extended attributes beside its bytes.
extension DirectoryFacts {
  /// The attribute of the freedesktop guidelines for media types.
  static let typeAttribute = "user.mime_type"
  static let metadataAttribute = "user.bucketfs.metadata"

  /// The facts of an open object, with what its writer said of it.
  static func info(of file: borrowing File, key: ByteString) throws(Errno) -> ObjectInfo {
    var info = DirectoryFacts(try file.status()).info(key: key)
    do throws(Errno) {
      info.userMetadata = decode(try attribute(metadataAttribute, of: file) ?? [])
      info.contentType = try attribute(typeAttribute, of: file).map {
        String(decoding: $0, as: UTF8.self)
      }
    } catch {
      // A file system without extended attributes: what is not known is nil.
      guard error == .notSupported else { throw error }
    }
    return info
  }

  private static func attribute(_ name: String, of file: borrowing File) throws(Errno) -> [UInt8]? {
    do throws(Errno) {
      return try file.attribute(name)
    } catch {
      if error == .noAttribute { return nil }
      throw error
    }
  }

  /// `name=value&…`, both percent-encoded.
  static func encode(_ metadata: [String: String]) -> [UInt8] {
    let pairs = metadata.sorted { $0.key < $1.key }.map { name, value in
      Percent.encode(ByteString(name)) + "=" + Percent.encode(ByteString(value))
    }
    return Array(pairs.joined(separator: "&").utf8)
  }

  private static func decode(_ bytes: [UInt8]) -> [String: String] {
    var metadata: [String: String] = [:]
    for pair in bytes.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let name = Percent.decode(parts[0])?.string,
        let value = Percent.decode(parts[1])?.string
      else { continue }
      metadata[name] = value
    }
    return metadata
  }
}
