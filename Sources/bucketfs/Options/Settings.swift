import Platform

/// Everything that the options decide, after the table's defaults, the profile and `-o`.
struct Settings: Equatable, Sendable {
  var maxAge = Span.zero
  var timeout = Span.zero
  /// Bytes; nil is unlimited.
  var cacheSize: Int64?
  /// Bytes; nil is unlimited.
  var listingCacheSize: Int64?
  var partSize: Int64 = 0
  var cacheDirectory = ""
  var dataDirectory = ""
  /// The owner that files show; nil is the mounting user.
  var uid: UInt32?
  var gid: UInt32?
  var umask: UInt32 = 0
  var readOnly = false
  var allowOther = false
  /// Whether a mount point that holds files is accepted.
  var nonEmpty = false
  var insecure = false
  var foreground = false
  var logLevel = ""
  var logFile = ""
  var configFile = ""
  var store = ""
  var url = ""
  var path = ""
  var bucket = ""
  var prefix = ""
  var endpoint = ""
  var region = ""
  var addressing = ""
  var awsProfile = ""
  /// Whether requests to an S3 store carry no credentials.
  var unsigned = false
  var accessKey = ""
  var secretKey = Secret("")
  var sessionToken = Secret("")
  var key = Secret("")
  var accessToken = Secret("")
  var names = ""
  /// Uploads in flight at a time.
  var uploads: Int64 = 0
  /// What close(2) and fsync(2) wait for: `local` or `remote`.
  var sync = ""
  var fsync = ""
  var headers: [Header] = []
  /// mount(8)'s own words, such as `noexec` and `_netdev`, as they were given.
  var mountWords: [String] = []

  /// A header that every request carries.
  struct Header: Equatable, Sendable {
    let name: String
    let value: Secret
  }

  /// The defaults, as the option table states them.
  static func standard() throws(Complaint) -> Settings {
    var settings = Settings()
    for option in Option.table where !option.standard.isEmpty {
      try option.apply(option.standard, to: &settings, from: .table)
    }
    return settings
  }
}
