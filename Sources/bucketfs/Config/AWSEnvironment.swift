import BucketStore
import Platform

/// What the environment, and the files of the AWS tools, say of a service of buckets.
///
/// Follows the names and the order of AWS's "configuration and credential file settings": the
/// environment, then a profile of `~/.aws/credentials` and `~/.aws/config`.
struct AWSEnvironment: Equatable, Sendable {
  /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
  var login: S3Credentials?
  /// `AWS_PROFILE`
  var profile: String?
  /// `AWS_REGION`, else `AWS_DEFAULT_REGION`
  var region: String?
  /// `AWS_ENDPOINT_URL_S3`, else `AWS_ENDPOINT_URL`
  var endpoint: String?
  /// `AWS_SHARED_CREDENTIALS_FILE`
  var credentialsFile = ""
  /// `AWS_CONFIG_FILE`
  var configFile = ""

  /// That of this process.
  static var current: AWSEnvironment {
    let home = Places.home + "/.aws/"
    var login: S3Credentials?
    if let access = Places.environment("AWS_ACCESS_KEY_ID"),
      let secret = Places.environment("AWS_SECRET_ACCESS_KEY")
    {
      login = S3Credentials(
        accessKey: access, secretKey: secret,
        sessionToken: Places.environment("AWS_SESSION_TOKEN"))
    }
    return AWSEnvironment(
      login: login, profile: Places.environment("AWS_PROFILE"),
      region: Places.environment("AWS_REGION") ?? Places.environment("AWS_DEFAULT_REGION"),
      endpoint: Places.environment("AWS_ENDPOINT_URL_S3")
        ?? Places.environment("AWS_ENDPOINT_URL"),
      credentialsFile: Places.environment("AWS_SHARED_CREDENTIALS_FILE") ?? home + "credentials",
      configFile: Places.environment("AWS_CONFIG_FILE") ?? home + "config")
  }
}

/// A file of the AWS tools: sections of lines `name = value`.
struct AWSFile: Sendable {
  /// By profile: `[NAME]`, or `[profile NAME]` in the other of the two files.
  let profiles: [String: [String: String]]

  /// - Throws: `Complaint` when it is there and cannot be read.
  static func read(_ path: String) throws(Complaint) -> AWSFile {
    do throws(Errno) {
      return AWSFile(
        text: String(decoding: try File.contents(of: path, limit: 1 << 20), as: UTF8.self))
    } catch .noEntry, .notDirectory {
      return AWSFile(text: "")
    } catch {
      throw Complaint(.usage, "\(path): cannot be read: \(error)")
    }
  }

  init(text: String) {
    var profiles: [String: [String: String]] = [:]
    var section: String?
    for line in text.split(whereSeparator: \.isNewline) {
      // An indented line belongs to a setting with parts of its own.
      guard let first = line.first, !" \t#;".contains(first) else { continue }
      if first == "[" {
        let words = line.dropFirst().prefix { $0 != "]" }.split { " \t".contains($0) }
        let isProfile = words.count == 1 || words.count == 2 && words[0] == "profile"
        section = isProfile ? words.last.map(String.init) : nil
        continue
      }
      guard let section, let cut = line.firstIndex(of: "=") else { continue }
      let name = Self.trim(line[..<cut]).lowercased()
      profiles[section, default: [:]][name] = Self.trim(line[line.index(after: cut)...])
    }
    self.profiles = profiles
  }

  /// The credentials of a profile; nil where it has none.
  func login(_ profile: String) -> S3Credentials? {
    guard let lines = profiles[profile], let access = lines["aws_access_key_id"],
      let secret = lines["aws_secret_access_key"], !access.isEmpty, !secret.isEmpty
    else { return nil }
    let token = lines["aws_session_token"]
    return S3Credentials(
      accessKey: access, secretKey: secret, sessionToken: token?.isEmpty ?? true ? nil : token)
  }

  private static func trim(_ text: Substring) -> String {
    var text = text.drop { " \t".contains($0) }
    while let last = text.last, " \t".contains(last) { text.removeLast() }
    return String(text)
  }
}
