import Platform

/// All that is decided before a mount begins: from the command line, the profile, the environment.
struct MountPlan: Equatable, Sendable {
  /// Where the objects are.
  enum Store: Equatable, Sendable {
    case supabase(url: String)
    case s3(S3Plan)
    case directory(path: String)
  }

  let store: Store
  let settings: Settings
  /// What `status` and the table of mounts show; holds no credential.
  let source: String
  /// Names the cache and data folders of this mount.
  let name: String
  let cacheDirectory: String
  let dataDirectory: String
  let key: Secret?
  let accessToken: Secret?
  /// What `SUPABASE_URL` names, where the environment's key is kept back for its sake; else nil.
  let otherProject: String?
  let bucket: ByteString?
  let prefix: ByteString?

  /// Decides.
  ///
  /// - Parameters:
  ///   - source: as typed; nil for the standard profile.
  ///   - lists: the texts of every `-o`, in order.
  ///   - sloppy: leaves unknown `-o` options out.
  init(
    source text: String?, lists: [String], sloppy: Bool = false,
    environment: SupabaseEnvironment = .current, aws: AWSEnvironment = .current
  ) throws(Complaint) {
    var given = Settings()
    for list in lists { try Option.apply(list: list, to: &given, sloppy: sloppy) }
    let source = try Self.source(text, given.configFile, environment)

    var settings = try Settings.standard()
    var name = ""
    if case .profile(let profile) = source {
      try Self.configuration(given.configFile).apply(profile, to: &settings)
      name = profile
    }
    for list in lists { try Option.apply(list: list, to: &settings, sloppy: sloppy) }

    var bucket = settings.bucket.isEmpty ? nil : ByteString(settings.bucket)
    var prefix = settings.prefix.isEmpty ? nil : ByteString(settings.prefix)
    switch source {
    case .supabase(let url, let named, let below):
      store = .supabase(url: url)
      if named != nil {
        bucket = named
        prefix = below
      }
    case .s3(let named, let below):
      store = .s3(try S3Plan(settings, aws))
      if named != nil {
        bucket = named
        prefix = below
      }
    case .directory(let path): store = .directory(path: path)
    case .profile(let profile): store = try Self.store(of: profile, settings, environment, aws)
    }
    guard prefix == nil || bucket != nil else {
      throw Complaint(.usage, "option prefix needs a bucket", hint: "add bucket=NAME")
    }
    self.prefix = prefix.flatMap(Self.folder)
    self.bucket = bucket
    self.settings = settings
    (key, accessToken) = Self.credentials(settings, for: store, environment)
    otherProject = Self.otherProject(store, environment)
    self.source = Self.shown(store, profile: name, bucket: bucket, prefix: self.prefix)
    self.name = name.isEmpty ? Self.name(of: store, bucket) : name
    cacheDirectory =
      settings.cacheDirectory.isEmpty ? Places.cache(of: self.name) : settings.cacheDirectory
    dataDirectory =
      settings.dataDirectory.isEmpty ? Places.data(of: self.name) : settings.dataDirectory
  }

  private static func configuration(_ file: String) throws(Complaint) -> Configuration {
    try Configuration.read(file.isEmpty ? Places.configuration : file)
  }

  /// The source as typed; where none is, the standard profile, or `SUPABASE_URL` without a profile.
  private static func source(
    _ text: String?, _ configFile: String, _ environment: SupabaseEnvironment
  ) throws(Complaint) -> Source {
    if let text { return try Source(text, environment) }
    let configuration = try configuration(configFile)
    if configuration.profiles[Source.standardProfile] == nil, environment.url != nil {
      return try Source("supabase:", environment)
    }
    return .profile(Source.standardProfile)
  }

  private static func store(
    of profile: String, _ settings: Settings, _ environment: SupabaseEnvironment,
    _ aws: AWSEnvironment
  ) throws(Complaint) -> Store {
    switch settings.store {
    case "s3": return .s3(try S3Plan(settings, aws))
    case "dir":
      guard !settings.path.isEmpty else {
        throw Complaint(
          .usage, "the profile \(profile) names no folder", hint: "add path = /a/folder to it")
      }
      return .directory(path: settings.path)
    case "supabase", "":
      guard let url = settings.url.isEmpty ? environment.url : settings.url
      else {
        throw Complaint(
          .usage, "the profile \(profile) names no address",
          hint: "add url = https://PROJECT.supabase.co to it, or set SUPABASE_URL")
      }
      return .supabase(url: try Source.project(url))
    default:
      throw Complaint(.usage, "the profile \(profile) names an unknown store")
    }
  }

  /// The profile's credentials, else the environment's; nil where there is none for this store.
  private static func credentials(
    _ settings: Settings, for store: Store, _ environment: SupabaseEnvironment
  ) -> (key: Secret?, accessToken: Secret?) {
    guard case .supabase(let url) = store else { return (nil, nil) }
    let outer = environment.covers(url) ? environment : SupabaseEnvironment()
    func choose(_ own: Secret, _ other: Secret?) -> Secret? { own.revealed.isEmpty ? other : own }
    return (
      choose(settings.key, outer.key), choose(settings.accessToken, outer.accessToken)
    )
  }

  private static func otherProject(_ store: Store, _ environment: SupabaseEnvironment) -> String? {
    guard case .supabase(let url) = store, environment.key != nil, !environment.covers(url) else {
      return nil
    }
    return environment.url
  }

  /// A prefix as the folder it names: without slashes at either end; nil when nothing is left.
  private static func folder(_ prefix: ByteString) -> ByteString? {
    var bytes = prefix.bytes[...]
    while bytes.first == ByteString.slash { bytes = bytes.dropFirst() }
    while bytes.last == ByteString.slash { bytes = bytes.dropLast() }
    return bytes.isEmpty ? nil : ByteString(bytes)
  }

  private static func shown(
    _ store: Store, profile: String, bucket: ByteString?, prefix: ByteString?
  ) -> String {
    if !profile.isEmpty { return profile }
    let way = [bucket, prefix].compactMap { $0 }.map { "/" + Percent.encodePath($0) }.joined()
    return switch store {
    case .supabase(let url): "supabase:\(url)\(way)"
    // As it is typed.
    case .s3: "s3://\([bucket, prefix].compactMap { $0?.description }.joined(separator: "/"))"
    case .directory(let path): "dir:\(path)"
    }
  }

  /// A name for the folders of a store that no profile names.
  ///
  /// One service of S3 has everybody's buckets: each that is mounted by itself has its own.
  private static func name(of store: Store, _ bucket: ByteString?) -> String {
    let (kind, text) =
      switch store {
      case .supabase(let url): ("supabase", url)
      case .s3(let plan): ("s3", plan.text + (bucket.map { "/\($0)" } ?? ""))
      case .directory(let path): ("dir", path)
      }
    return kind + "-" + Digest.hex(.sha256, of: Array(text.utf8)).prefix(16)
  }
}
