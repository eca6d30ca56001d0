import Foundation
import Testing

@testable import bucketfs

/// The man page and the tables name the same things.
struct ManualTests {
  private static let path = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("man/bucketfs.1").path

  private let sections: [String: [String]]

  init() throws {
    let text = try String(contentsOfFile: Self.path, encoding: .utf8)
    var sections: [String: [String]] = [:]
    var name = ""
    for line in text.split(separator: "\n").map(String.init) {
      if line.hasPrefix(".Sh ") { name = String(line.dropFirst(4)) }
      sections[name, default: []].append(line)
    }
    self.sections = sections
  }

  /// The words of a kind in the heads of a section's list.
  private func heads(_ section: String, _ macro: String) -> [String] {
    sections[section, default: []].filter { $0.hasPrefix(".It ") }.flatMap { line in
      line.dropFirst(4).components(separatedBy: " , ").compactMap { item in
        let words = item.split(separator: " ")
        return words.first.map(String.init) == macro && words.count > 1 ? String(words[1]) : nil
      }
    }
  }

  @Test func thePageIsWellFormed() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["mandoc", "-Tlint", Self.path]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(output.isEmpty)
    #expect(process.terminationStatus == 0)
  }

  @Test func itNamesEveryOptionAndNoOther() {
    let table = Option.table.flatMap { [$0.name] + ($0.alias.map { [$0] } ?? []) }
    #expect(heads("OPTIONS", "Cm").sorted() == table.sorted())
  }

  @Test func itNamesEveryDefault() {
    let text = sections["OPTIONS", default: []].joined(separator: "\n")
    for option in Option.table where !option.standard.isEmpty {
      let item = text.components(separatedBy: "\n.It ").first {
        $0.hasPrefix("Cm \(option.name) ") || $0.hasPrefix("Cm \(option.name)\n")
      }
      #expect(item?.contains("Default \(option.standard).") == true, "\(option.name)")
    }
  }

  @Test func itNamesEveryVerbAndNoOther() {
    #expect(heads("VERBS", "Cm") == Verb.allCases.map(\.rawValue))
    let synopsis = sections["SYNOPSIS", default: []].filter { $0.hasPrefix(".Cm ") }
      .flatMap { $0.dropFirst(4).components(separatedBy: " | ") }
    #expect(synopsis.sorted() == Verb.allCases.map(\.rawValue).sorted())
  }

  @Test func itNamesEveryFlagAndNoOther() {
    let flags = Flag.allCases.flatMap { [$0.rawValue] + ($0.alias.map { [$0] } ?? []) }
    #expect(heads("FLAGS", "Fl").map { "-" + $0 }.sorted() == flags.sorted())
  }

  @Test func itNamesEveryExitCodeAndNoOther() {
    let codes = sections["EXIT STATUS", default: []].filter { $0.hasPrefix(".It ") }
      .map { String($0.dropFirst(4)) }
    #expect(codes == ExitCode.allCases.map { "\($0.rawValue)" })
  }

  @Test func theHelpNamesEveryOptionVerbAndFlag() {
    let mount = Help.verb(.mount)
    for option in Option.table { #expect(mount.contains("  " + option.usage)) }
    for verb in Verb.allCases { #expect(Help.program.contains("  \(verb.rawValue) ")) }
  }

  @Test func itNamesEveryKeyOfTheAnswers() throws {
    let text = sections["JSON", default: []].joined(separator: " ")
      .replacingOccurrences(of: ",", with: " ")
    let words = Set(text.split(separator: " ").map(String.init))
    let status = StatusReport.sample
    let copy = CopyReport(path: "", copy: "", fetchedAt: "", size: 0)
    let lines = [
      JSON.encode(status), JSON.encode(copy), JSON.encode(ObjectReport.sample),
      JSON.encode(HiddenKeyReport(bucket: "", key: "", reason: "")),
      JSON.encode(ErrorReport(Complaint(.no, ""))),
      JSON.encode(UnmountReport(mountpoint: "", pid: nil, queue: nil)),
      JSON.encode(StatusReport.Queue()), JSON.encode(QueueReport.sample),
      JSON.encode(ConflictReport(at: "", path: "", copy: "")),
      JSON.encode(WaitReport(outcome: "stored", queue: StatusReport.Queue(), reason: nil)),
      JSON.encode(ChangeReport(path: "", files: 1)),
      JSON.encode(ClearReport(mountpoint: "", before: 1, after: 0, pending: 0)),
      JSON.encode(MountReport(mountpoint: "", pid: 1, source: "")),
    ]
    for line in lines {
      let value = try JSONSerialization.jsonObject(with: Data(line))
      let keys = try #require(value as? [String: Any])
      for key in keys.keys { #expect(words.contains(key), "\(key)") }
    }
  }
}

extension StatusReport {
  static var sample: StatusReport {
    StatusReport(state: "serving", mountpoint: "/m", source: "bucketfs")
  }
}

extension QueueReport {
  static var sample: QueueReport {
    QueueReport(
      id: "1", bucket: "b", objectPath: "a", path: "/m/b/a", operation: "put", state: "waiting",
      reason: nil, kind: nil, retryable: true, attempts: 0, size: 10, sent: 0,
      createdAt: "2026-11-30T08:00:00Z", nextTry: nil, conflictOf: nil)
  }
}

extension ObjectReport {
  static var sample: ObjectReport {
    ObjectReport(
      path: "/m/b/a", bucket: "b", key: "a", state: "remote", confirmed: true, size: 1, etag: nil,
      version: nil, modified: nil, contentType: nil, metadata: nil, copy: nil, fetchedAt: nil)
  }
}
