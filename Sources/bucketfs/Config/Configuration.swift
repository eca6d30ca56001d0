import Glibc
import Platform

/// The configuration file: sections `[profile]` of lines `option = value`.
struct Configuration: Equatable, Sendable {
  /// One setting of a profile.
  struct Line: Equatable, Sendable {
    let number: Int
    let name: String
    /// nil where no `=` stands.
    let value: String?
  }

  let file: String
  let profiles: [String: [Line]]

  /// Reads a file. A missing one is an empty configuration.
  ///
  /// - Throws: `Complaint` when it cannot be read or understood, belongs to another user, or holds a
  ///   credential and can be read by others.
  static func read(_ path: String) throws(Complaint) -> Configuration {
    let (bytes, status): ([UInt8], stat)
    do throws(Errno) {
      (bytes, status) = try load(path)
    } catch {
      if error == .noEntry { return Configuration(file: path, profiles: [:]) }
      throw Complaint(.usage, "\(path): the configuration cannot be read: \(error)")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw Complaint(.usage, "\(path): the configuration is not UTF-8 text")
    }
    let configuration = try Configuration(file: path, text: text)
    try configuration.check(owner: status.st_uid, mode: status.st_mode)
    return configuration
  }

  private init(file: String, profiles: [String: [Line]]) {
    self.file = file
    self.profiles = profiles
  }

  /// Reads the text of a file: `#` and `;` begin comments at the start of a line.
  init(file: String, text: String) throws(Complaint) {
    var profiles: [String: [Line]] = [:]
    var section: String?
    for (index, raw) in text.split(
      omittingEmptySubsequences: false, whereSeparator: \.isNewline
    ).enumerated() {
      let number = index + 1
      let line = Self.trim(raw)
      if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
      if line.hasPrefix("[") {
        let name = Self.trim(line.dropFirst().dropLast())
        guard line.hasSuffix("]"), Source.isProfileName(name) else {
          throw Complaint(
            .usage, "\(file):\(number): a profile's name is letters, digits, dots, - and _",
            hint: "write [bucketfs]")
        }
        guard profiles[name] == nil else {
          throw Complaint(.usage, "\(file):\(number): the profile \(name) is there already")
        }
        profiles[name] = []
        section = name
        continue
      }
      guard let section else {
        throw Complaint(
          .usage, "\(file):\(number): a setting before the first profile",
          hint: "write [bucketfs] above it")
      }
      profiles[section, default: []].append(Self.setting(line, number))
    }
    self.file = file
    self.profiles = profiles
  }

  /// Sets what a profile says.
  ///
  /// - Throws: `Complaint` when there is no such profile, or a line of it is wrong.
  func apply(_ profile: String, to settings: inout Settings) throws(Complaint) {
    guard let lines = profiles[profile] else {
      let near = Spelling.nearest(to: profile, among: profiles.keys.sorted())
      throw Complaint(
        .usage, "there is no profile \(profile) in \(file)",
        hint: near.map { "did you mean \($0)?" }
          ?? "add a section [\(profile)] with store, url and key to it")
    }
    var seen: Set<String> = []
    for line in lines {
      let origin = Option.Origin.configuration(file: file, line: line.number)
      let option = try Option.named(line.name, from: origin)
      guard seen.insert(line.name).inserted else {
        throw Complaint(.usage, "\(origin.prefix)option \(line.name) is there already")
      }
      try option.apply(line.value, to: &settings, from: origin)
    }
  }

  /// Refuses a file that another user could have written, or that shows a credential to others.
  private func check(owner: UInt32, mode: UInt32) throws(Complaint) {
    guard owner == geteuid() || owner == 0 else {
      throw Complaint(
        .refused, "\(file) belongs to another user (\(owner))", hint: "chown it to yourself")
    }
    guard mode & 0o022 == 0 else {
      throw Complaint(
        .refused, "\(file) can be written by others", hint: "chmod 600 \(file)")
    }
    guard mode & 0o077 != 0, let profile = firstSecret else { return }
    throw Complaint(
      .refused, "\(file) can be read by others and holds a credential (in [\(profile)])",
      hint: "chmod 600 \(file)")
  }

  /// A profile that holds a credential; nil when none does.
  private var firstSecret: String? {
    profiles.keys.sorted().first { name in
      profiles[name, default: []].contains { line in
        Option.isSecret(line.name)
      }
    }
  }

  private static func setting(_ line: String, _ number: Int) -> Line {
    guard let cut = line.firstIndex(of: "=") else {
      return Line(number: number, name: line, value: nil)
    }
    return Line(
      number: number, name: trim(line[..<cut]), value: trim(line[line.index(after: cut)...]))
  }

  private static func trim(_ text: some StringProtocol) -> String {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    let start = text.drop(while: isBlank)
    var end = start[...]
    while let last = end.last, isBlank(last) { end = end.dropLast() }
    return String(end)
  }

  private static func load(_ path: String) throws(Errno) -> ([UInt8], stat) {
    // O_NONBLOCK: a pipe under this name must not hold us up.
    let file = try File(path, O_RDONLY | O_NONBLOCK)
    let status = try file.status()
    guard status.st_mode & S_IFMT == S_IFREG else { throw .invalid }
    guard status.st_size <= 1 << 20 else { throw .fileTooLarge }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
      try file.read(UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
    return (Array(bytes.prefix(count)), status)
  }
}
