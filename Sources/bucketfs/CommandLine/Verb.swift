/// What the program can be told to do.
enum Verb: String, CaseIterable, Codable, Sendable {
  case mount
  case unmount
  case status
  case queue
  case retry
  case remove
  case wait
  case offline
  case online
  case cached
  case ensure
  case info
  case clear
  case unreachable

  /// What stands after the verb, as the help and the man page show it.
  var operands: String {
    switch self {
    case .mount: "[SOURCE] MOUNTPOINT"
    case .status: "[MOUNTPOINT]"
    case .unmount, .queue, .wait, .offline, .online, .clear, .unreachable: "MOUNTPOINT"
    case .retry, .remove, .cached, .ensure, .info: "PATH ..."
    }
  }

  /// How many operands it takes.
  var count: ClosedRange<Int> {
    switch self {
    case .mount: 1...2
    case .status: 0...1
    case .unmount, .queue, .wait, .offline, .online, .clear, .unreachable: 1...1
    case .retry, .remove, .cached, .ensure, .info: 1...Int.max
    }
  }

  var summary: String {
    switch self {
    case .mount: "mount a store as a folder"
    case .unmount: "unmount it"
    case .status: "show the state of one mount, or of all"
    case .queue: "list the files that the store does not have yet"
    case .retry: "try at once to upload what failed or waits"
    case .remove: "give up files that the store does not have yet"
    case .wait: "wait until all files are uploaded"
    case .offline: "switch network access off"
    case .online: "switch network access on, and try the store at once"
    case .cached: "show the copy kept on this device, without asking the store"
    case .ensure: "fetch a copy when there is none"
    case .info: "show all that is known of an object"
    case .clear: "remove the copies and listings kept on this device"
    case .unreachable: "list the objects whose keys cannot be paths"
    }
  }

  /// The flags that it takes.
  var flags: [Flag] {
    switch self {
    case .mount: [.options, .foreground, .json, .help]
    case .unmount: [.drain, .timeout, .json, .help]
    case .queue: [.watch, .json, .help]
    case .wait: [.timeout, .json, .help]
    case .clear: [.pending, .json, .help]
    default: [.json, .help]
    }
  }
}

/// A flag of the command line.
enum Flag: String, CaseIterable, Sendable {
  case options = "-o"
  case foreground = "-f"
  case watch = "--watch"
  case drain = "--wait"
  case timeout = "--timeout"
  case pending = "--pending"
  case json = "--json"
  case help = "--help"
  case version = "--version"

  /// A second spelling; nil where there is none.
  var alias: String? {
    switch self {
    case .options: "--options"
    case .foreground: "--foreground"
    case .help: "-h"
    case .version: "-V"
    case .watch, .drain, .timeout, .pending, .json: nil
    }
  }

  /// What it takes; nil for nothing.
  var placeholder: String? {
    switch self {
    case .options: "OPTIONS"
    case .timeout: "TIME"
    default: nil
    }
  }

  /// How `--flag=VALUE` begins; nil where there is no such spelling.
  var longName: String? {
    guard placeholder != nil else { return nil }
    return rawValue.hasPrefix("--") ? rawValue : alias
  }

  var summary: String {
    switch self {
    case .options: "options with commas between them; may be repeated"
    case .foreground: "stay in the foreground, and log to standard error"
    case .watch: "go on showing progress until all is uploaded"
    case .drain: "wait until all files are uploaded, then unmount"
    case .timeout: "wait no longer than this"
    case .pending: "remove the files that the store does not have yet, too: they are lost"
    case .json: "answer in JSON"
    case .help: "show this help"
    case .version: "show the version"
    }
  }
}
