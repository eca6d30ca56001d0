import Platform

/// The user's own metadata as headers (`x-amz-meta-NAME`), and back.
///
/// A header's value is ASCII. What is not, or has spaces at its ends, is written as an encoded word
/// of RFC 2047, as AWS documents it for S3, and such words are read.
enum S3Metadata {
  static let prefix = "x-amz-meta-"

  /// Bytes of names and values together, which S3 bounds.
  static let limit = 2048

  /// - Throws: `StoreError`; `unsupported` for a name that no header can have, `tooLarge`.
  static func headers(_ metadata: [String: String]) throws(StoreError) -> [(
    name: String, value: String
  )] {
    var headers: [(name: String, value: String)] = []
    var size = 0
    for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
      let isToken =
        !name.isEmpty
        && name.utf8.allSatisfy { byte in
          (48...57).contains(byte) || (97...122).contains(byte) || "-_.".utf8.contains(byte)
        }
      guard isToken else {
        throw StoreError(.unsupported, "no metadata can be named “\(name)”")
      }
      let text = encode(value)
      size += name.utf8.count + text.utf8.count
      headers.append((prefix + name, text))
    }
    guard size <= limit else {
      throw StoreError(.tooLarge, "the object's metadata is longer than \(limit) bytes")
    }
    return headers
  }

  static func metadata(_ headers: [String: String]) -> [String: String] {
    var metadata: [String: String] = [:]
    for (name, value) in headers where name.hasPrefix(prefix) {
      metadata[String(name.dropFirst(prefix.count))] = decode(value)
    }
    return metadata
  }

  private static func encode(_ value: String) -> String {
    let isPlain =
      value.utf8.allSatisfy { $0 >= 32 && $0 < 127 } && !value.hasPrefix(" ")
      && !value.hasSuffix(" ") && !value.contains("  ") && !value.contains(open)
    return isPlain ? value : "\(open)UTF-8?B?\(Base64Text.encode(Array(value.utf8)))\(close)"
  }

  /// The text of a value that is one encoded word, or several with spaces between; any other as it
  /// is.
  private static func decode(_ value: String) -> String {
    let words = value.split(separator: " ").map(String.init)
    var bytes: [UInt8] = []
    for word in words {
      guard word.hasPrefix(open), word.hasSuffix(close), word.utf8.count > 4 else { return value }
      let parts = word.dropFirst(2).dropLast(2).split(
        separator: "?", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, ["utf-8", "us-ascii"].contains(parts[0].lowercased()) else {
        return value
      }
      switch parts[1].lowercased() {
      case "b":
        guard let decoded = Base64Text.decodeURL(String(parts[2])) else { return value }
        bytes += decoded
      case "q":
        let text = parts[2].utf8.map { byte -> UInt8 in
          switch byte {
          case UInt8(ascii: "_"): UInt8(ascii: " ")
          case UInt8(ascii: "="): UInt8(ascii: "%")
          default: byte
          }
        }
        guard !parts[2].contains("%"), let decoded = Percent.decode(text) else { return value }
        bytes += decoded.bytes
      default: return value
      }
    }
    return words.isEmpty ? value : String(decoding: bytes, as: UTF8.self)
  }

  private static let open = "=?"
  private static let close = "?="
}
