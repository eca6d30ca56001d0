import Platform

/// One option: its name, what it takes, where it may stand, and what it sets.
///
/// The table of them serves `-o`, the configuration file, the help and the check of the man page.
struct Option: Sendable {
  /// Where an option comes from.
  enum Origin: Equatable, Sendable {
    /// The table's own default.
    case table
    /// `-o` on the command line.
    case commandLine
    /// A line of the configuration file.
    case configuration(file: String, line: Int)
    /// The environment variable of this name.
    case environment(String)

    /// How a complaint names the place, with a colon and a space; empty for the command line.
    var prefix: String {
      switch self {
      case .table, .commandLine: ""
      case .configuration(let file, let line): "\(file):\(line): "
      case .environment(let name): "\(name): "
      }
    }
  }

  /// Where an option is accepted.
  enum Place: Sendable {
    case everywhere
    case commandLineOnly
    case configurationOnly
    /// Holds a credential: the command line, which every process can see, is refused.
    case secret
  }

  let name: String
  /// A second spelling; nil where there is none.
  let alias: String?
  let argument: Argument
  /// The default as a person would write it; empty when there is none.
  let standard: String
  let place: Place
  let help: String

  init(
    _ name: String, alias: String? = nil, _ argument: Argument, standard: String = "",
    place: Place = .everywhere, _ help: String
  ) {
    self.name = name
    self.alias = alias
    self.argument = argument
    self.standard = standard
    self.place = place
    self.help = help
  }

  /// The name with its argument, as the help and the man page show it.
  var usage: String { argument.placeholder.map { "\(name)=\($0)" } ?? name }

  /// Reads the value and sets it.
  ///
  /// - Parameter value: nil where the option was given without `=`.
  func apply(_ value: String?, to settings: inout Settings, from origin: Origin) throws(Complaint) {
    try check(origin)
    do throws(Argument.Refusal) {
      try argument.apply(value, to: &settings)
    } catch {
      throw Complaint(
        .usage, "\(origin.prefix)option \(name): \(error.why)", hint: "write \(usage)")
    }
  }

  private func check(_ origin: Origin) throws(Complaint) {
    switch (place, origin) {
    case (.secret, .commandLine):
      let variable =
        switch name {
        case "secret_key": "AWS_SECRET_ACCESS_KEY"
        case "session_token": "AWS_SESSION_TOKEN"
        default: "SUPABASE_KEY"
        }
      throw Complaint(
        .usage, "option \(name): a credential must not stand on the command line",
        hint:
          "every process can read it there; put it into the configuration file, or into \(variable)"
      )
    case (.configurationOnly, .commandLine):
      throw Complaint(
        .usage, "option \(name) belongs into the configuration file, not on the command line")
    case (.commandLineOnly, .configuration):
      throw Complaint(.usage, "\(origin.prefix)option \(name) belongs on the command line only")
    default: break
    }
  }
}
