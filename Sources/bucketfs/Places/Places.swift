import Glibc
import Platform

/// Where the program keeps things, after the XDG base directory specification.
///
/// Works without `HOME`, which mount(8) does not hand on.
enum Places {
  /// The user's home folder: `HOME`, else what passwd(5) knows, else `/`.
  static var home: String {
    if let home = environment("HOME"), home.hasPrefix("/") { return home }
    return Account.home(of: getuid()) ?? "/"
  }

  /// A variable of the environment; nil when it is unset or empty.
  static func environment(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// The configuration file that is read when none is named.
  static var configuration: String {
    base("XDG_CONFIG_HOME", ".config") + "/bucketfs/config"
  }

  /// The folder of a mount's copies and listings.
  static func cache(of name: String) -> String {
    base("XDG_CACHE_HOME", ".cache") + "/bucketfs/" + name
  }

  /// The folder of what a mount must not lose.
  static func data(of name: String) -> String {
    base("XDG_DATA_HOME", ".local/share") + "/bucketfs/" + name
  }

  /// A path made absolute from the working directory; nil when that is gone.
  static func absolute(_ path: String) -> String? {
    if path.hasPrefix("/") { return path }
    guard let folder = workingDirectory else { return nil }
    return folder + (folder.hasSuffix("/") ? "" : "/") + path
  }

  /// The working directory as the kernel knows it; nil when it was removed.
  static var workingDirectory: String? {
    guard let path = getcwd(nil, 0) else { return nil }
    defer { free(path) }
    let text = String(cString: path)
    return text.hasPrefix("/") ? text : nil
  }

  private static func base(_ variable: String, _ fallback: String) -> String {
    // The specification says that a relative path is to be ignored.
    if let path = environment(variable), path.hasPrefix("/") { return path }
    return home + (home.hasSuffix("/") ? "" : "/") + fallback
  }
}
