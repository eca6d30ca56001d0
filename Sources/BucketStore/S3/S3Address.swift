package import Platform

/// Where a service of buckets answers, and how a bucket's name goes into its addresses.
package struct S3Address: Sendable, Equatable {
  /// Where a request has the bucket's name.
  package enum Style: String, Sendable, CaseIterable {
    /// `https://host/bucket/key`
    case path
    /// `https://bucket.host/key`
    case virtual
  }

  /// Scheme, host, port and path, without a slash at the end; nil for AWS itself, whose host
  /// follows from the region.
  package let endpoint: String?
  /// The region that requests are signed for.
  package let region: String
  /// Where requests have the bucket's name.
  package let style: Style

  /// - Parameters:
  ///   - endpoint: nil for AWS.
  ///   - region: nil for `us-east-1`, which servers without regions take.
  ///   - style: nil for the virtual one with AWS, the other elsewhere.
  /// - Throws: `StoreError` of kind `unsupported` with a sentence that says what is wrong.
  package init(endpoint: String?, region: String? = nil, style: Style? = nil) throws(StoreError) {
    let region = region ?? "us-east-1"
    guard !region.isEmpty, region.utf8.allSatisfy(Self.isLabel) else {
      throw StoreError(.unsupported, "“\(region)” is no region")
    }
    self.region = region
    self.style = style ?? (endpoint == nil ? .virtual : .path)
    guard var base = endpoint.map({ Substring($0) }) else {
      self.endpoint = nil
      return
    }
    while base.hasSuffix("/") { base.removeLast() }
    guard let scheme = ["https://", "http://"].first(where: { base.lowercased().hasPrefix($0) })
    else {
      throw StoreError(
        .unsupported, "“\(base)” is no endpoint: it must begin with https:// or http://")
    }
    let rest = base.dropFirst(scheme.count)
    let host = rest.prefix { $0 != "/" }
    guard !host.isEmpty, !host.contains("@"), rest.utf8.allSatisfy(Self.isPlain) else {
      throw StoreError(
        .unsupported, "“\(base)” is no endpoint: https://, a host and perhaps a path are wanted")
    }
    self.endpoint = scheme + rest
  }

  /// Where a request goes: its parts before the query.
  package struct Target: Sendable, Equatable {
    /// `https://` or `http://`.
    package var scheme: String
    /// As the header `Host` has it.
    package var host: String
    /// Percent-encoded, beginning with `/`.
    package var path: String

    /// The whole, without a query.
    package var url: String { scheme + host + path }
  }

  /// The address of a bucket, of an object in it, or of the service.
  ///
  /// A bucket whose name holds a dot has no certificate in the virtual style, so over TLS the path
  /// names it.
  /// - Parameters:
  ///   - region: another region than the address's, where the bucket was found to be in one.
  package func target(bucket: ByteString?, key: ByteString? = nil, region: String? = nil)
    -> Target
  {
    let base = endpoint ?? "https://s3.\(region ?? self.region).amazonaws.com"
    let scheme = base.lowercased().hasPrefix("https://") ? "https://" : "http://"
    let rest = base.dropFirst(scheme.count)
    var host = String(rest.prefix { $0 != "/" }).lowercased()
    var path = String(rest.dropFirst(host.utf8.count))
    let standard = scheme == "https://" ? ":443" : ":80"
    if host.hasSuffix(standard) { host.removeLast(standard.count) }
    if let bucket {
      let dotted = scheme == "https://" && bucket.bytes.contains(UInt8(ascii: "."))
      if style == .virtual, !dotted, let name = bucket.string {
        host = "\(name).\(host)"
      } else {
        path += "/" + Percent.encode(bucket)
      }
    }
    if let key { path += "/" + Percent.encodePath(key) }
    return Target(scheme: scheme, host: host, path: path.isEmpty ? "/" : path)
  }

  /// Whether a bucket can have this name at any server: bytes that stand in a host and in a path as
  /// they are.
  package static func isBucket(_ name: ByteString) -> Bool {
    (1...255).contains(name.count) && name != "." && name != ".."
      && name.bytes.allSatisfy { isLabel($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") }
  }

  private static func isLabel(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...122).contains(byte | 32) || byte == UInt8(ascii: "-")
  }

  /// Neither a query nor a fragment, a user part, a space, a percent sign or a control character.
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte > 32 && byte < 127 && !"?#@\"<>\\^`{}|%".utf8.contains(byte)
  }
}
