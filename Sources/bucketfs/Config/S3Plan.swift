import BucketStore
import Platform

/// Where a mount of S3 buckets goes, and with whose credentials.
struct S3Plan: Equatable, Sendable {
  /// Whence the credentials come.
  enum Login: Equatable, Sendable {
    case given(S3Credentials)
    /// A profile of these files; the first that has credentials counts. They are read again when
    /// they change, since other tools renew temporary credentials there.
    case profile(String, files: [String])
    /// Requests are not signed: the buckets are open to everybody.
    case unsigned
  }

  let address: S3Address
  let login: Login

  /// Decides: the profile and the options, then the environment, then the files of the AWS tools.
  ///
  /// - Throws: `Complaint` when an address cannot be one, or there are no credentials.
  init(_ settings: Settings, _ environment: AWSEnvironment) throws(Complaint) {
    func choose(_ own: String, _ others: String?...) -> String? {
      own.isEmpty ? others.lazy.compactMap { $0 }.first { !$0.isEmpty } : own
    }
    let profile = choose(settings.awsProfile, environment.profile) ?? "default"
    let lines = try AWSFile.read(environment.configFile).profiles[profile] ?? [:]
    do throws(StoreError) {
      address = try S3Address(
        endpoint: choose(settings.endpoint, environment.endpoint, lines["endpoint_url"]),
        region: choose(settings.region, environment.region, lines["region"]),
        style: S3Address.Style(rawValue: settings.addressing))
    } catch {
      throw Complaint(.usage, error.message)
    }
    login = try Self.login(settings, environment, profile)
  }

  private static func login(
    _ settings: Settings, _ environment: AWSEnvironment, _ profile: String
  ) throws(Complaint) -> Login {
    if settings.unsigned { return .unsigned }
    let (access, secret) = (settings.accessKey, settings.secretKey.revealed)
    guard access.isEmpty == secret.isEmpty else {
      throw Complaint(
        .usage, "access_key and secret_key belong together", hint: "give both in the profile")
    }
    if !access.isEmpty {
      let token = settings.sessionToken.revealed
      return .given(
        S3Credentials(
          accessKey: access, secretKey: secret, sessionToken: token.isEmpty ? nil : token))
    }
    // A profile that is named goes before the environment's keys.
    if settings.awsProfile.isEmpty, let login = environment.login { return .given(login) }
    let files = [environment.credentialsFile, environment.configFile]
    for file in files where try AWSFile.read(file).login(profile) != nil {
      return .profile(profile, files: files)
    }
    throw Complaint(
      .usage,
      "there are no credentials for \(profile == "default" ? "S3" : "the AWS profile \(profile)")",
      hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them into "
        + "\(environment.credentialsFile); -o unsigned asks without any")
  }

  /// The address, for people and as a part of the identity of what is kept.
  var text: String { address.endpoint ?? "https://s3.amazonaws.com" }

  /// Whose the credentials are. The session token of a Supabase project is a user's: there the access
  /// key names the project.
  static func user(of credentials: S3Credentials) -> String {
    let user = credentials.sessionToken.flatMap { AccessToken.user(of: Secret($0)) }
    return credentials.owner + (user.map { "/" + $0 } ?? "")
  }

  /// Gives the credentials for each request.
  var provider: @Sendable () -> S3Credentials? {
    switch login {
    case .unsigned: return { nil }
    case .given(let credentials): return { credentials }
    case .profile(let name, let files):
      let watched = WatchedCredentials(name, files)
      return { watched.current }
    }
  }
}

/// Credentials of a profile in files, read again when one of them has changed.
private final class WatchedCredentials: Sendable {
  private struct State {
    var stamp: [Stamp?] = []
    var credentials: S3Credentials?
  }

  private struct Stamp: Equatable {
    let inode: UInt64
    let size: Int64
    let modified: Timestamp
  }

  private let profile: String
  private let files: [String]
  private let state = Locked(State())

  init(_ profile: String, _ files: [String]) {
    self.profile = profile
    self.files = files
  }

  /// The last that were read, where the files cannot be read at the moment.
  var current: S3Credentials? {
    let stamp = files.map(Self.stamp)
    let (known, isCurrent) = state.withLock { ($0.credentials, $0.stamp == stamp) }
    guard !isCurrent, let found = read() else { return known }
    state.withLock { state in
      state.stamp = stamp
      state.credentials = found
    }
    return found
  }

  private func read() -> S3Credentials? {
    for file in files {
      do throws(Complaint) {
        if let found = try AWSFile.read(file).login(profile) { return found }
      } catch {
        Log.warning(error.sentence)
      }
    }
    return nil
  }

  private static func stamp(_ path: String) -> Stamp? {
    do throws(Errno) {
      let status = try File(path, 0).status()
      return Stamp(
        inode: UInt64(status.st_ino), size: Int64(status.st_size),
        modified: Timestamp(
          seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec)))
    } catch {
      // Not there: that is a state of it too.
      return nil
    }
  }
}
