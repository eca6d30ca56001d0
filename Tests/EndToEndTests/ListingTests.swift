import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// Every key is listed, and a walk costs a request for a thousand keys.
@Suite(.serialized) struct ListingTests {
  /// 40 folders of 250 objects, with the names that the server loses at its page borders.
  private func awkwardKeys() -> [String] {
    var keys: [String] = []
    for folder in 0..<40 {
      for object in 0..<250 {
        let name = "f\(folder)/photo_\(object / 5)"
        keys.append(name + [".jpg", ".jpg.json", ".jpg (1)", "", "-thumb.jpg"][object % 5])
      }
    }
    keys += ["docs/a", "Docs/a", "Docs/b", "DOCS/c", "docs_x", "docs.txt"]
    return keys
  }

  @Test(.timeLimit(.minutes(5)), arguments: [Configuration.Profile.hosted, .old])
  func exactlyTheKeysThatTheServerHoldsAreListed(_ profile: Configuration.Profile) throws {
    let project = try Project(Configuration(profile: profile, listing: .faithful))
    project.emulator.createBucket("album")
    let keys = awkwardKeys()
    try project.emulator.put("album", keys: keys.map { ByteString($0) }, Array("x".utf8))
    try project.mount("max_age=60")
    #expect(try project.tree(timeout: 240) == keys.asTree(bucket: "album"))
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(5)))
  func aWalkOfManyFoldersCostsAHandfulOfRequestsAndNoneAgain() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    var keys: [String] = []
    for folder in 0..<110 {
      for object in 0..<(2000 / 110 + (folder < 2000 % 110 ? 1 : 0)) {
        keys.append("f\(folder)/\(object).jpg")
      }
    }
    #expect(keys.count == 2000)
    try project.emulator.put("album", keys: keys.map { ByteString($0) }, Array("x".utf8))
    try project.mount("max_age=120")
    project.emulator.requests.clear()
    let cold = try project.machine.shell(#"ls -lR "$M/album" | grep -c '\.jpg$'"#)
    #expect(cold.output == "2000\n")
    #expect(project.requests("list") <= 6)
    #expect(project.requests("object", "info") == 0)

    project.emulator.requests.clear()
    #expect(try project.machine.shell(#"ls -lR "$M/album" | grep -c '\.jpg$'"#).output == "2000\n")
    #expect(project.requests("list", "object", "info") == 0)

    try project.machine.unmount()
    try project.mount("max_age=120")
    project.emulator.requests.clear()
    #expect(try project.machine.shell(#"ls -lR "$M/album" | grep -c '\.jpg$'"#).output == "2000\n")
    #expect(project.requests("list", "object", "info") == 0)

    try project.machine.unmount()
    project.emulator.stop()
    try project.mount("max_age=1")
    #expect(try project.machine.shell(#"ls -lR "$M/album" | grep -c '\.jpg$'"#).output == "2000\n")
    try project.machine.unmount()
  }

  @Test(.timeLimit(.minutes(8)))
  func aFolderOfAHundredThousandObjectsListsCompletelyInBoundedMemory() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    let keys = (0..<100_000).map { ByteString("all/photo-\($0).jpg") }
    try project.emulator.put("album", keys: keys, Array("x".utf8))
    try project.mount("max_age=600")
    let outcome = try project.machine.shell(#"ls "$M/album/all" | sort -u | wc -l"#, timeout: 300)
    #expect(outcome.output == "100000\n")
    let pid = try project.machine.pid()
    let status = String(
      decoding: try Data(contentsOf: URL(fileURLWithPath: "/proc/\(pid)/status")), as: UTF8.self)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM") })
    let kilobytes = try #require(Int(line.filter(\.isNumber)))
    #expect(kilobytes < 300 << 10, "peak \(kilobytes) KiB")
    try project.machine.unmount()
  }
}
