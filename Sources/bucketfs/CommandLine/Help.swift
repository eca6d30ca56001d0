/// The texts of `--help` and `--version`, made from the tables.
enum Help {
  static let version = "0.1.0"

  static var program: String {
    var text = "usage: bucketfs VERB [OPERAND ...] [FLAG ...]\n\nverbs:\n"
    text += rows(Verb.allCases.map { ("\($0.rawValue) \($0.operands)", $0.summary) })
    text += "\nflags:\n" + rows([Flag.json, .help, .version].map { (spelling($0), $0.summary) })
    text += "\nexit codes:\n" + rows(ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) })
    return text + "\nThe manual is bucketfs(1).\n"
  }

  static func verb(_ verb: Verb) -> String {
    var text = "usage: bucketfs \(verb.rawValue) \(verb.operands) [FLAG ...]\n\n\(verb.summary)\n"
    text += "\nflags:\n" + rows(verb.flags.map { (spelling($0), $0.summary) })
    guard verb == .mount else { return text }
    text += """

      SOURCE is the name of a profile of the configuration file (\(Source.standardProfile) where none
      is given), supabase:URL[/bucket[/prefix]], s3://[bucket[/prefix]], or dir:/path.

      options of -o:

      """
    text += rows(Option.table.filter { $0.place.allowsCommandLine }.map(row))
    text += "\noptions of the configuration file alone:\n"
    text += rows(Option.table.filter { !$0.place.allowsCommandLine }.map(row))
    return text
  }

  private static func row(_ option: Option) -> (String, String) {
    let standard = option.standard.isEmpty ? "" : " [\(option.standard)]"
    return (option.usage, option.help + standard)
  }

  private static func spelling(_ flag: Flag) -> String {
    [flag.rawValue, flag.alias].compactMap { $0 }.joined(separator: ", ")
      + (flag.placeholder.map { " \($0)" } ?? "")
  }

  /// Two columns; a left side that is too long gets a line of its own.
  private static func rows(_ rows: [(String, String)]) -> String {
    let width = 30
    return rows.map { left, right in
      let head = "  " + left
      let gap =
        head.count + 2 > width
        ? "\n" + String(repeating: " ", count: width)
        : String(repeating: " ", count: width - head.count)
      return head + gap + right + "\n"
    }.joined()
  }
}

extension Option.Place {
  /// Whether `-o` takes it.
  var allowsCommandLine: Bool { self == .everywhere || self == .commandLineOnly }
}
