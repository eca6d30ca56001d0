import Glibc
import Platform

/// Media types by file name, as shared-mime-info lists them, read at the first use.
///
/// Follows the globs2 file of the shared MIME-info specification: `weight:type:glob[:flags]`, the
/// greater weight first, then the longer glob. Of globs, plain names and `*.suffix` count; others
/// are rare, and none of files that a bucket's rules look at.
final class ContentTypes: Sendable {
  static let unknown = "application/octet-stream"

  private struct Rules {
    var names: [String: (weight: Int, type: String)] = [:]
    var suffixes: [String: (weight: Int, type: String)] = [:]
  }

  private let path: String
  private let rules = Locked<Rules?>(nil)

  init(_ path: String = "/usr/share/mime/globs2") {
    self.path = path
  }

  /// The type for a key's last segment; `unknown` for names that say nothing.
  func type(for key: ByteString) -> String {
    guard let last = key.split(at: ByteString.slash).last, let name = last.string else {
      return Self.unknown
    }
    return rules.withLock { rules in
      let known = rules ?? Self.read(path)
      rules = known
      // As written first, since `.C` and `.c` differ, then without regard to capitals.
      return Self.find(name, known) ?? Self.find(name.lowercased(), known) ?? Self.unknown
    }
  }

  private static func find(_ name: String, _ rules: Rules) -> String? {
    if let rule = rules.names[name] { return rule.type }
    var best: (weight: Int, type: String)?
    var rest = Substring(name)
    // From the longest suffix to the shortest: `.tar.gz` before `.gz`, unless its weight is less.
    while let dot = rest.dropFirst().firstIndex(of: ".") {
      rest = rest[dot...]
      if let rule = rules.suffixes[String(rest)], rule.weight > (best?.weight ?? -1) { best = rule }
    }
    if rest.first == ".", rest.count == name.count, let rule = rules.suffixes[name] {
      if rule.weight > (best?.weight ?? -1) { best = rule }
    }
    return best?.type
  }

  private static func read(_ path: String) -> Rules {
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try File.contents(of: path)
    } catch {
      if error != .noEntry { Log.warning("no media types from \(path): \(error)") }
      return builtIn
    }
    var rules = builtIn
    for line in bytes.split(separator: UInt8(ascii: "\n")) where line.first != UInt8(ascii: "#") {
      let fields = line.split(separator: UInt8(ascii: ":"), maxSplits: 3)
      guard fields.count >= 3, let weight = Int(String(decoding: fields[0], as: UTF8.self)) else {
        continue
      }
      add(
        String(decoding: fields[2], as: UTF8.self),
        (weight, String(decoding: fields[1], as: UTF8.self)), to: &rules)
    }
    return rules
  }

  private static func add(
    _ glob: String, _ rule: (weight: Int, type: String), to rules: inout Rules
  ) {
    if glob.hasPrefix("*.") {
      let suffix = String(glob.dropFirst())
      guard !suffix.contains(where: { "*?[".contains($0) }) else { return }
      if rule.weight > (rules.suffixes[suffix]?.weight ?? -1) { rules.suffixes[suffix] = rule }
    } else if !glob.contains(where: { "*?[".contains($0) }) {
      if rule.weight > (rules.names[glob]?.weight ?? -1) { rules.names[glob] = rule }
    }
  }

  /// What is common, for devices without the shared list; any rule of that list is preferred.
  private static let builtIn: Rules = {
    var rules = Rules()
    let types: [(String, String)] = [
      ("avif", "image/avif"), ("gif", "image/gif"), ("heic", "image/heic"), ("jpeg", "image/jpeg"),
      ("jpg", "image/jpeg"), ("png", "image/png"), ("svg", "image/svg+xml"),
      ("tif", "image/tiff"), ("tiff", "image/tiff"), ("webp", "image/webp"),
      ("m4a", "audio/mp4"), ("mp3", "audio/mpeg"), ("ogg", "audio/ogg"), ("wav", "audio/x-wav"),
      ("mkv", "video/x-matroska"), ("mov", "video/quicktime"), ("mp4", "video/mp4"),
      ("webm", "video/webm"), ("css", "text/css"), ("csv", "text/csv"), ("html", "text/html"),
      ("md", "text/markdown"), ("txt", "text/plain"), ("xml", "application/xml"),
      ("gz", "application/gzip"), ("json", "application/json"), ("pdf", "application/pdf"),
      ("zip", "application/zip"), ("tar", "application/x-tar"),
    ]
    for (suffix, type) in types { rules.suffixes["." + suffix] = (0, type) }
    return rules
  }()
}
