import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// A queue of ten thousand files: what each costs a program that starts.
@Suite(.serialized) struct ManyPendingTests {
  private static let count = 10_000

  /// What the kernel has counted of a process.
  private struct Costs {
    /// Calls that read, of files and sockets alike.
    var reads = 0
    /// Calls that write.
    var writes = 0
    /// Bytes of memory that are the process's own.
    var memory = 0

    init(of pid: Int32) throws {
      for (file, fields) in [
        ("io", ["syscr:": \Costs.reads, "syscw:": \.writes]), ("status", ["RssAnon:": \.memory]),
      ] {
        let text = try String(contentsOfFile: "/proc/\(pid)/\(file)", encoding: .utf8)
        for line in text.split(separator: "\n") {
          let words = line.split(whereSeparator: \.isWhitespace)
          guard words.count > 1, let field = fields[String(words[0])] else { continue }
          let value = try #require(Int(words[1]))
          self[keyPath: field] = words.count > 2 ? value << 10 : value
        }
      }
    }
  }

  /// Mounts, and looks at the program that has just come up.
  private func costs(_ project: Project) throws -> Costs {
    try project.mount("max_age=1,bucket=album")
    let costs = try Costs(of: project.machine.pid())
    try project.machine.unmount()
    return costs
  }

  @Test(.timeLimit(.minutes(4)))
  func eachPendingFileCostsTheStartTwoReadsAndTwoKibibytes() throws {
    let project = try Project()
    let machine = project.machine
    project.emulator.createBucket("album")
    try project.mount("max_age=1,bucket=album")
    project.emulator.stop()
    let made = try machine.shell(#"mkdir "$M/folder" && echo 1 > "$M/folder/IMG_00000.jpg""#)
    #expect(made.code == 0, "\(made)")
    try machine.unmount()
    let without = try costs(project)
    #expect(without.reads > 0 && without.memory > 1 << 20)

    // As the program itself writes them, but for the name and the number.
    let found = try machine.run(
      "find", machine.scratch.path("data"), "-name", "*.json", "-path", "*/pending/*")
    let (path, text) = try #require(
      try found.output.split(separator: "\n").lazy.map { path in
        (String(path), try String(contentsOfFile: String(path), encoding: .utf8))
      }.first { $0.1.contains("IMG_00000.jpg") })
    let folder = (path as NSString).deletingLastPathComponent
    let id = ((path as NSString).lastPathComponent as NSString).deletingPathExtension
    let number = try #require(UInt64(id, radix: 16))
    for index in 1...Self.count {
      let other = String(number + UInt64(index), radix: 16)
      let name = "IMG_" + String(100_000 + index).dropFirst() + ".jpg"
      let record = text.replacingOccurrences(of: id, with: other)
        .replacingOccurrences(of: "IMG_00000.jpg", with: name)
      for (suffix, bytes) in [("json", Array(record.utf8)), ("data", Array("1\n".utf8))] {
        let file = try File("\(folder)/\(other).\(suffix)", O_WRONLY | O_CREAT | O_EXCL)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
      }
    }

    let with = try costs(project)
    let each = { (field: KeyPath<Costs, Int>) in
      Double(with[keyPath: field] - without[keyPath: field]) / Double(Self.count)
    }
    #expect(each(\.reads) <= 2.1)
    #expect(each(\.writes) <= 0.1)
    #expect(each(\.memory) <= 2048)

    // They are all there, and all can be opened.
    try project.mount("max_age=1,bucket=album")
    let names = try FileManager.default.contentsOfDirectory(atPath: project.path("folder"))
    #expect(names.count == Self.count + 1)
    #expect(try project.read("folder/IMG_07777.jpg") == Array("1\n".utf8))
    let queue = try #require(try machine.status()["queue"] as? [String: Any])
    #expect((queue["waiting"] as? Int ?? 0) > Self.count, "\(queue)")
    #expect(queue["failed"] as? Int == 0 && queue["aside"] as? Int == 0, "\(queue)")
    try machine.unmount()
  }
}
