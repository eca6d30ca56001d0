import BucketStore
import Mount

extension Option {
  /// Every option there is.
  static let table: [Option] = [
    Option(
      "max_age", .span(\.maxAge, zero: true), standard: "1s",
      "how long a copy or a listing counts as fresh after the store confirmed it; 0 asks each time"
    ),
    Option(
      "timeout", .span(\.timeout, zero: false), standard: "10s",
      "how long the store may stay silent before a call fails"),
    Option(
      "cache_size", .size(\.cacheSize, least: 0), standard: "256M",
      "bound of the copies kept on this device, or unlimited"),
    Option(
      "listing_cache_size", .size(\.listingCacheSize, least: 4096), standard: "100M",
      "bound of the listings kept on this device, or unlimited"),
    Option(
      "part_size", .bytes(\.partSize, range: 65536...1_073_741_824), standard: "8M",
      "objects larger than this are fetched in parts when read at random"),
    Option(
      "cache_dir", .path(\.cacheDirectory),
      "folder of copies and listings; one mount at a time uses it"),
    Option("data_dir", .path(\.dataDirectory), "folder of what must not be lost, and of the log"),
    Option("uid", .user(\.uid), "owner that files show; the mounting user where not given"),
    Option("gid", .group(\.gid), "group that files show; the mounting user's where not given"),
    Option("umask", .octal(\.umask), standard: "022", "permission bits that files do not show"),
    Option("ro", .flag(\.readOnly), "mount for reading only"),
    Option("allow_other", .flag(\.allowOther), "let other users of this device in"),
    Option("nonempty", .flag(\.nonEmpty), "mount over a folder that holds files"),
    Option("bucket", .text(\.bucket), "show this bucket alone, as the top folder"),
    Option("prefix", .text(\.prefix), "show this folder of the bucket alone, as the top folder"),
    Option(
      "names", .choice(\.names, KeyEncoding.allCases.map(\.rawValue)), standard: "encode",
      "how names that the store refuses are written: encoded, or not at all"),
    Option(
      "uploads", .count(\.uploads, range: 1...64), standard: "4",
      "files on their way to the store at a time; 1 keeps strictly to the order"),
    Option(
      "sync", .choice(\.sync, ["local", "remote"]), standard: "local",
      "where a file is when its last writer has closed it: on this device, or at the store"),
    Option(
      "fsync", .choice(\.fsync, ["local", "remote"]), standard: "local",
      "where a file is when fsync has returned: on this device, or at the store"),
    Option(
      "header.NAME", .header(name: ""), "send this header with every request; may be repeated"),
    Option(
      "endpoint", .text(\.endpoint),
      "address of an s3 store other than Amazon's; AWS_ENDPOINT_URL where not given"),
    Option("region", .text(\.region), "region of an s3 store; AWS_REGION where not given"),
    Option(
      "addressing", .choice(\.addressing, S3Address.Style.allCases.map(\.rawValue)),
      "where the bucket's name stands in requests to an s3 store: in the path or in the host"),
    Option(
      "aws_profile", .text(\.awsProfile),
      "profile of ~/.aws/credentials for an s3 store; AWS_PROFILE where not given"),
    Option("unsigned", .flag(\.unsigned), "send no credentials to an s3 store"),
    Option("insecure", .flag(\.insecure), "allow plain http to another machine"),
    Option(
      "log_level", .choice(\.logLevel, ["debug", "info", "warning", "error"]), standard: "warning",
      "the least that is logged"),
    Option(
      "log_file", .path(\.logFile),
      "where the log goes; the file log in data_dir, or standard error in the foreground"),
    Option("foreground", .flag(\.foreground), "stay in the foreground, as -f does"),
    Option(
      "config", .path(\.configFile), place: .commandLineOnly,
      "the configuration file to read"),
    Option(
      "store", .choice(\.store, ["supabase", "s3", "dir"]), place: .configurationOnly,
      "what kind of store a profile names"),
    Option("url", .text(\.url), place: .configurationOnly, "address of a supabase store"),
    Option("path", .path(\.path), place: .configurationOnly, "folder of a dir store"),
    Option(
      "access_key", .text(\.accessKey), place: .configurationOnly,
      "access key of an s3 store; AWS_ACCESS_KEY_ID where not given"),
    Option(
      "secret_key", .secret(\.secretKey), place: .secret,
      "secret key of an s3 store; AWS_SECRET_ACCESS_KEY where not given"),
    Option(
      "session_token", .secret(\.sessionToken), place: .secret,
      "token of temporary credentials of an s3 store; AWS_SESSION_TOKEN where not given"),
    Option(
      "key", alias: "apikey", .secret(\.key), place: .secret,
      "key of the store; SUPABASE_KEY where not given"),
    Option(
      "access_token", .secret(\.accessToken), place: .secret,
      "token of a signed-in user; SUPABASE_ACCESS_TOKEN where not given"),
  ]

  private static let headerPrefix = "header."

  /// Headers that carry credentials, in lower case.
  private static let secretHeaders: Set<String> = [
    "authorization", "proxy-authorization", "apikey", "cookie", "x-api-key",
  ]

  /// Whether an option of this name holds a credential.
  static func isSecret(_ name: String) -> Bool {
    if name.hasPrefix(headerPrefix) {
      return secretHeaders.contains(name.dropFirst(headerPrefix.count).lowercased())
    }
    return table.contains { ($0.name == name || $0.alias == name) && $0.place == .secret }
  }

  /// The option of this name; a `header.` option is made for the header it names.
  ///
  /// - Throws: `Complaint` with the nearest name when there is none.
  static func named(_ name: String, from origin: Origin) throws(Complaint) -> Option {
    if name.hasPrefix(headerPrefix) {
      let header = String(name.dropFirst(headerPrefix.count))
      guard HTTPRequest.isToken(header) else {
        throw Complaint(.usage, "\(origin.prefix)option \(name): that is no name of a header")
      }
      let place: Place = isSecret(name) ? .secret : .everywhere
      return Option(name, .header(name: header), place: place, "")
    }
    if let option = table.first(where: { $0.name == name || $0.alias == name }) { return option }
    let near = Spelling.nearest(to: name, among: table.map(\.name))
    throw Complaint(
      .usage, "\(origin.prefix)unknown option \(name)",
      hint: near.map { "did you mean \($0)?" } ?? "bucketfs mount --help lists the options")
  }

  /// Reads the text of one `-o`: options with commas between them.
  ///
  /// A value in double quotes may hold commas. Words of mount(8) and every `x-` word are accepted.
  /// - Parameter sloppy: leaves unknown options out instead of refusing them (mount -s).
  static func apply(list: String, to settings: inout Settings, sloppy: Bool = false)
    throws(Complaint)
  {
    for item in split(list) where !item.isEmpty {
      let (name, value) = parts(of: item)
      let option: Option
      do throws(Complaint) {
        option = try named(name, from: .commandLine)
      } catch {
        if isMountWord(item) {
          settings.mountWords.append(item)
        } else if !sloppy {
          throw error
        }
        continue
      }
      try option.apply(value, to: &settings, from: .commandLine)
    }
  }

  /// Whether it is one of the words that mount(8) gives to every file system.
  private static func isMountWord(_ item: String) -> Bool {
    var options = MountOptions(mountPoint: "", source: "")
    return options.take(word: item)
  }

  private static func parts(of item: String) -> (name: String, value: String?) {
    guard let cut = item.firstIndex(of: "=") else { return (item, nil) }
    return (String(item[..<cut]), String(item[item.index(after: cut)...]))
  }

  private static func split(_ list: String) -> [String] {
    var items = [""]
    var quoted = false
    for character in list {
      switch character {
      case "\"": quoted.toggle()
      case "," where !quoted: items.append("")
      default: items[items.count - 1].append(character)
      }
    }
    return items
  }
}
