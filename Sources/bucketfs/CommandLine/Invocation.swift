import Glibc
import Platform

/// A command line that has been understood.
struct Invocation: Equatable, Sendable {
  let verb: Verb
  var operands: [ByteString] = []
  /// The texts of every `-o`, in order.
  var options: [String] = []
  var foreground = false
  var json = false
  /// `queue --watch`.
  var watch = false
  /// `unmount --wait`.
  var drain = false
  /// `clear --pending`.
  var pending = false
  /// How long to wait; nil is for ever.
  var timeout: Span?
  /// mount(8)'s `-s`: unknown options are left out.
  var sloppy = false
  /// mount(8)'s `-f`: all is checked, nothing is mounted.
  var fake = false

  init(_ verb: Verb) {
    self.verb = verb
  }

  /// The arguments of this process as bytes, the program's name first.
  static func processArguments() -> [ByteString] {
    var arguments: [ByteString] = []
    let vector = CommandLine.unsafeArgv
    for index in 0..<Int(CommandLine.argc) {
      if let text = vector[index] { arguments.append(ByteString(cString: text)) }
    }
    return arguments
  }

  /// Reads what follows `bucketfs VERB`.
  ///
  /// - Throws: `Request` when help was asked for, as `Complaint` otherwise.
  static func read(_ verb: Verb, _ arguments: some Sequence<ByteString>) throws(Complaint)
    -> Reading
  {
    var invocation = Invocation(verb)
    var rest = Array(arguments)[...]
    var flagsOver = false
    while let word = rest.popFirst() {
      guard !flagsOver, word.hasPrefix("-"), word != "-" else {
        invocation.operands.append(word)
        continue
      }
      if word == "--" {
        flagsOver = true
        continue
      }
      let (flag, attached) = try find(word, for: verb)
      switch flag {
      case .help, .version: return .help
      case .json: invocation.json = true
      case .foreground: invocation.foreground = true
      case .watch: invocation.watch = true
      case .drain: invocation.drain = true
      case .pending: invocation.pending = true
      case .options, .timeout:
        guard let value = attached ?? rest.popFirst() else {
          throw Complaint(
            .usage, "\(flag.rawValue) needs \(flag == .options ? "options" : "a time") after it")
        }
        try invocation.take(flag, try text(value))
      }
    }
    try invocation.checkOperands()
    return .run(invocation)
  }

  /// What was asked for.
  enum Reading: Equatable, Sendable {
    case run(Invocation)
    case help
  }

  /// Reads the command line that mount(8) gives its helpers:
  /// `SOURCE DIR [-sfnv] [-N namespace] [-o options] [-t type]`.
  static func readHelper(_ arguments: some Sequence<ByteString>) throws(Complaint) -> Invocation {
    var invocation = Invocation(.mount)
    var rest = Array(arguments)[...]
    while let word = rest.popFirst() {
      guard word.hasPrefix("-"), word.count > 1 else {
        invocation.operands.append(word)
        continue
      }
      switch word {
      case "-o":
        guard let value = rest.popFirst() else {
          throw Complaint(.usage, "-o needs options after it")
        }
        invocation.options.append(try text(value))
      case "-t", "-N": _ = rest.popFirst()
      default:
        for letter in word.bytes.dropFirst() {
          switch letter {
          case UInt8(ascii: "s"): invocation.sloppy = true
          case UInt8(ascii: "f"): invocation.fake = true
          case UInt8(ascii: "n"), UInt8(ascii: "v"), UInt8(ascii: "r"), UInt8(ascii: "w"): break
          default: throw Complaint(.usage, "unknown flag \(word)")
          }
        }
      }
    }
    guard invocation.operands.count == 2 else {
      throw Complaint(
        .usage, "mount.bucketfs takes a source and a mount point",
        hint: "it is called by mount -t bucketfs SOURCE MOUNTPOINT")
    }
    return invocation
  }

  /// Text of an argument that is no path.
  static func text(_ word: ByteString) throws(Complaint) -> String {
    guard let text = word.string else { throw Complaint(.usage, "\(word) is not UTF-8 text") }
    return text
  }

  private static func find(_ word: ByteString, for verb: Verb) throws(Complaint)
    -> (Flag, ByteString?)
  {
    let spelled = try text(word)
    for flag in verb.flags {
      if spelled == flag.rawValue || spelled == flag.alias { return (flag, nil) }
      if flag == .options, spelled.hasPrefix("-o") { return (flag, word.dropFirst(2)) }
      if let name = flag.longName, spelled.hasPrefix(name + "=") {
        return (flag, word.dropFirst(name.utf8.count + 1))
      }
    }
    let near = Spelling.nearest(
      to: spelled, among: verb.flags.flatMap { [$0.rawValue, $0.alias ?? $0.rawValue] })
    throw Complaint(
      .usage, "\(verb.rawValue): unknown flag \(spelled)",
      hint: near.map { "did you mean \($0)?" } ?? "bucketfs \(verb.rawValue) --help lists them")
  }

  private mutating func take(_ flag: Flag, _ value: String) throws(Complaint) {
    guard flag == .timeout else {
      options.append(value)
      return
    }
    do throws(Argument.Refusal) {
      timeout = try Quantity.span(value)
    } catch {
      throw Complaint(.usage, "--timeout: \(error.why)", hint: "write --timeout 30s")
    }
  }

  private func checkOperands() throws(Complaint) {
    guard !verb.count.contains(operands.count) else { return }
    let problem =
      operands.count < verb.count.lowerBound
      ? "an operand is missing" : "\(operands[verb.count.upperBound]) is one operand too many"
    throw Complaint(
      .usage, "\(verb.rawValue): \(problem)",
      hint: "bucketfs \(verb.rawValue) \(verb.operands)")
  }
}
