import BucketStore
import Platform

/// What a mount shows: the store, and where in it.
///
/// Follows the grammar of SOURCE: a profile's name, `supabase:URL[/bucket[/prefix]]`,
/// `s3://[bucket[/prefix]]`, `dir:/path`.
enum Source: Equatable, Sendable {
  case profile(String)
  /// The address of the project; bucket and prefix are nil where all is shown.
  case supabase(url: String, bucket: ByteString?, prefix: ByteString?)
  /// Bucket and prefix are nil where all is shown.
  case s3(bucket: ByteString?, prefix: ByteString?)
  case directory(path: String)

  /// The profile that is mounted when none is named.
  static let standardProfile = "bucketfs"

  /// Reads what a person typed.
  ///
  /// - Parameter environment: gives `supabase:` its address.
  init(_ text: String, _ environment: SupabaseEnvironment = .current) throws(Complaint) {
    guard let colon = text.firstIndex(of: ":") else {
      guard Self.isProfileName(text) else {
        throw Complaint(
          .usage, "\(text) is no source",
          hint: "name a profile, or write supabase:URL, s3://bucket or dir:/path")
      }
      self = .profile(text)
      return
    }
    let rest = String(text[text.index(after: colon)...])
    switch text[..<colon] {
    case "supabase": self = try Self.supabase(rest, environment)
    case "dir":
      guard let path = Places.absolute(rest), !rest.isEmpty else {
        throw Complaint(.usage, "\(text) names no folder", hint: "write dir:/path")
      }
      self = .directory(path: path)
    case "s3":
      self = try Self.s3(rest)
    case "http", "https":
      throw Complaint(
        .usage, "\(text) does not say what kind of store it is", hint: "write supabase:\(text)")
    default:
      throw Complaint(
        .usage, "\(text): there is no kind of store called \(text[..<colon])",
        hint: "write supabase:URL, s3://bucket or dir:/path")
    }
  }

  /// Splits `//bucket/prefix`, which is taken as it is: other tools' addresses of this kind are not
  /// percent-encoded.
  private static func s3(_ text: String) throws(Complaint) -> Source {
    guard text.isEmpty || text.hasPrefix("//") else {
      throw Complaint(.usage, "s3:\(text) names no bucket", hint: "write s3://bucket")
    }
    let way = ByteString(String(text.dropFirst(2))).bytes
    let name = ByteString(way.prefix { $0 != ByteString.slash })
    let prefix = ByteString(way.dropFirst(name.count + 1))
    guard name.isEmpty ? prefix.isEmpty : S3Address.isBucket(name) else {
      throw Complaint(
        .usage, "s3:\(text): no bucket can have this name",
        hint: "write s3://bucket, and the server's address as -o endpoint=URL")
    }
    return .s3(bucket: name.isEmpty ? nil : name, prefix: prefix.isEmpty ? nil : prefix)
  }

  /// Whether a word begins as only a source does.
  static func hasKind(_ word: ByteString) -> Bool {
    ["supabase:", "dir:", "s3:"].contains { word.hasPrefix($0) }
  }

  /// Whether a word may name a profile.
  static func isProfileName(_ text: String) -> Bool {
    !text.isEmpty && !text.hasPrefix(".")
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
          UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }

  /// Splits an address into the project's and the way inside it, which is percent-decoded.
  ///
  /// - Parameter text: `URL[/bucket[/prefix]]`; empty stands for `SUPABASE_URL`.
  private static func supabase(_ text: String, _ environment: SupabaseEnvironment)
    throws(Complaint) -> Source
  {
    if text.isEmpty {
      guard let url = environment.url else {
        throw Complaint(
          .usage, "supabase: names no address", hint: "write supabase:URL, or set SUPABASE_URL")
      }
      return .supabase(url: try project(url), bucket: nil, prefix: nil)
    }
    let scheme = text.hasPrefix("https://") ? "https://" : "http://"
    guard text.hasPrefix(scheme) else {
      throw Complaint(
        .usage, "\(shown(text)) is no address", hint: "write supabase:https://PROJECT.supabase.co")
    }
    var segments = text.dropFirst(scheme.count).split(
      separator: "/", omittingEmptySubsequences: true
    )[...]
    guard let host = segments.popFirst() else {
      throw Complaint(.usage, "supabase:\(shown(text)) names no server")
    }
    if segments.count >= 2, segments.prefix(2).elementsEqual(["storage", "v1"]) {
      segments = segments.dropFirst(2)
    }
    let url = try project(scheme + host)
    let decoded = segments.map { Percent.decode($0.utf8) }
    let way = decoded.compactMap { $0 }
    guard way.count == decoded.count else {
      throw Complaint(
        .usage, "supabase:\(shown(text)): a % must be followed by two hexadecimal digits",
        hint: "write %25 for a percent sign")
    }
    let prefix = ByteString(way.dropFirst().map(\.bytes).joined(separator: [ByteString.slash]))
    return .supabase(url: url, bucket: way.first, prefix: prefix.isEmpty ? nil : prefix)
  }

  /// The address of a project without `/storage/v1` and slashes at its end.
  ///
  /// - Throws: `Complaint` when it is no http address, or holds a password, a query or a fragment.
  static func project(_ text: String) throws(Complaint) -> String {
    guard !text.contains("@") else {
      throw Complaint(
        .usage, "\(shown(text)): an address must not hold a name or a password",
        hint: "put the key into the configuration file or SUPABASE_KEY")
    }
    do throws(StoreError) {
      return try SupabaseAddress(text).project
    } catch {
      throw Complaint(.usage, error.message, hint: "write https://PROJECT.supabase.co")
    }
  }

  /// An address for people, without what stands before an `@`.
  private static func shown(_ url: String) -> String {
    guard let at = url.lastIndex(of: "@") else { return url }
    return "…" + url[at...]
  }
}
