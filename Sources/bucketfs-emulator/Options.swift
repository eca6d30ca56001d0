import Glibc
import Platform
import StorageEmulator

/// What the command line of the emulator says.
struct Options {
  var configuration = Configuration()
  var port: UInt16 = 0
  var usersFile: String?
  var importFolder: String?
  var printsKeys = false

  static let usage = """
    usage: bucketfs-emulator --data DIR [--port N] [--profile hosted|local|old]
             [--listing faithful|fixed] [--users FILE] [--import DIR] [--print-keys]
             [--token-life SECONDS]

    Serves Supabase Storage below http://127.0.0.1:N/storage/v1 and Auth below /auth/v1, and
    prints `ready http://127.0.0.1:N` once it listens. Port 0 (the default) takes a free one.
    Everything is kept in DIR and is there again at the next start.
      --users FILE    users, their policies and buckets, in JSON
      --import DIR    puts the files of each sub-folder of DIR into a bucket of its name
      --print-keys    prints the keys `anon`, `service`, `publishable` and `secret` first
    """

  /// A sentence about a command line that cannot be followed.
  struct Misuse: Error {
    let sentence: String
  }

  init(_ arguments: [String]) throws(Misuse) {
    var rest = arguments[...]
    while let name = rest.popFirst() {
      switch name {
      case "--print-keys": printsKeys = true
      case "--data", "--port", "--profile", "--listing", "--users", "--import", "--token-life":
        guard let value = rest.popFirst() else {
          throw Misuse(sentence: "\(name) needs a value")
        }
        guard take(name, value) else {
          throw Misuse(sentence: "\(name) cannot be \(value)")
        }
      default: throw Misuse(sentence: "unknown option \(name)")
      }
    }
    if configuration.data == nil { throw Misuse(sentence: "--data is missing") }
  }

  private mutating func take(_ name: String, _ value: String) -> Bool {
    switch name {
    case "--data":
      configuration.data = value
      return !value.isEmpty
    case "--port":
      guard let number = UInt16(value) else { return false }
      port = number
    case "--profile":
      guard let profile = Configuration.Profile(rawValue: value) else { return false }
      configuration.profile = profile
    case "--listing":
      guard let listing = Configuration.Listing(rawValue: value) else { return false }
      configuration.listing = listing
    case "--token-life":
      guard let life = Int64(value), life > 0 else { return false }
      configuration.tokenLife = life
    case "--users": usersFile = value
    default: importFolder = value
    }
    return true
  }
}
