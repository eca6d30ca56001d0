/// What the program can be told to do.
enum Verb: String, CaseIterable, Codable, Sendable {
  case mount
  case unmount
  case status
  case offline
  case online
  case cached
  case ensure
  case info
  case unreachable

  /// What stands after the verb, as the help and the man page show it.
  var operands: String {
    switch self {
    case .mount: "[SOURCE] MOUNTPOINT"
    case .status: "[MOUNTPOINT]"
    case .unmount, .offline, .online, .unreachable: "MOUNTPOINT"
    case .cached, .ensure, .info: "PATH ..."
    }
  }

  /// How many operands it takes.
  var count: ClosedRange<Int> {
    switch self {
    case .mount: 1...2
    case .status: 0...1
    case .unmount, .offline, .online, .unreachable: 1...1
    case .cached, .ensure, .info: 1...Int.max
    }
  }

  var summary: String {
    switch self {
    case .mount: "mount a store as a folder"
    case .unmount: "unmount it"
    case .status: "show the state of one mount, or of all"
    case .offline: "switch network access off"
    case .online: "switch network access on, and try the store at once"
    case .cached: "show the copy kept on this device, without asking the store"
    case .ensure: "fetch a copy when there is none"
    case .info: "show all that is known of an object"
    case .unreachable: "list the objects whose keys cannot be paths"
    }
  }

  /// The flags that it takes.
  var flags: [Flag] {
    self == .mount ? [.options, .foreground, .json, .help] : [.json, .help]
  }
}

/// A flag of the command line.
enum Flag: String, CaseIterable, Sendable {
  case options = "-o"
  case foreground = "-f"
  case json = "--json"
  case help = "--help"
  case version = "--version"

  /// A second spelling; nil where there is none.
  var alias: String? {
    switch self {
    case .options: "--options"
    case .foreground: "--foreground"
    case .json: nil
    case .help: "-h"
    case .version: "-V"
    }
  }

  var takesValue: Bool { self == .options }

  var summary: String {
    switch self {
    case .options: "options with commas between them; may be repeated"
    case .foreground: "stay in the foreground, and log to standard error"
    case .json: "answer in JSON, one object a line"
    case .help: "show this help"
    case .version: "show the version"
    }
  }
}
