import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// Hostile and odd keys: shown under their own name or not at all, and never outside the cache.
@Suite(.serialized) struct NamesTests {
  /// Every path of a folder, with type, size and content's digest: what a comparison needs.
  private func picture(of folder: String, without hidden: [String]) throws -> [String] {
    var result: [String] = []
    let walker = try #require(FileManager.default.enumerator(atPath: folder))
    while let path = walker.nextObject() as? String {
      if hidden.contains(where: { path == $0 || path.hasPrefix($0 + "/") }) {
        walker.skipDescendants()
        continue
      }
      result.append(path)
    }
    return result.sorted()
  }

  @Test(.timeLimit(.minutes(3)))
  func hostileKeysAreCountedAndNothingIsWrittenOutsideTheCache() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    // What the store does not take stands encoded in the key and is shown as itself.
    let good: [(key: String, name: String)] = [
      ("plain.jpg", "plain.jpg"), ("100=2525.jpg", "100%25.jpg"), ("a+b c;d.jpg", "a+b c;d.jpg"),
      ("=252e=252e.jpg", "%2e%2e.jpg"), ("dir/x", "dir/x"), ("b=C3=BC.txt", "bü.txt"),
    ]
    let long = String(repeating: "n", count: 300)
    let hidden: [ByteString] = [
      "../escape.jpg", "x/../../escape2.jpg", "/lead.jpg", "d//double.jpg", "./dot.jpg",
      ByteString("control\u{1}.jpg"), ByteString(long), "dir", "back\\slash.jpg",
    ]
    for (key, name) in good {
      try project.emulator.put("album", ByteString(key), Array(name.utf8))
    }
    for key in hidden { try project.emulator.put("album", key, Array("evil".utf8)) }
    let machine = project.machine
    try project.mount("max_age=1")
    let before = try picture(of: machine.scratch.path, without: ["mnt", "cache", "data", "run"])

    // Whether a folder that holds nothing but hidden keys is shown, empty, is not promised.
    let shown = try project.tree().filter { $0 != "album/d/" && $0 != "album/x/" }
    #expect(
      shown == [
        "album/", "album/%2e%2e.jpg", "album/100%25.jpg", "album/a+b c;d.jpg", "album/bü.txt",
        "album/dir/", "album/dir/x", "album/plain.jpg",
      ])
    for (_, name) in good {
      #expect(try project.read("album/" + name) == Array(name.utf8), "\(name)")
    }
    for name in ["album/..", "album/../album/plain.jpg"] {
      #expect(access(project.path(name), F_OK) == 0)
    }
    let unreachable = try machine.bucketfs("unreachable", machine.mountpoint)
    for key in ["../escape.jpg", "/lead.jpg", "d//double.jpg", long, "back\\slash.jpg"] {
      #expect(unreachable.output.contains(key), "\(key): \(unreachable.output)")
    }
    #expect(try machine.status()["hidden_keys"] as? Int == hidden.count)

    let after = try picture(of: machine.scratch.path, without: ["mnt", "cache", "data", "run"])
    #expect(after == before)
    let cached = try picture(of: machine.scratch.path("cache"), without: [])
    #expect(!cached.contains { $0.contains("escape") || $0.contains("lead.jpg") })
    try machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func eachNameReachesExactlyItsObjectOnTheWire() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    try project.emulator.put("album", "a b+c;d?e.jpg", [1])
    try project.mount("max_age=1")
    #expect(try project.read("album/a b+c;d?e.jpg") == [1])
    let request = try #require(project.emulator.requests.entries().last { $0.route == "object" })
    #expect(
      request.path.hasPrefix("/storage/v1/object/authenticated/album/a%20b%2Bc%3Bd%3Fe.jpg"))
    try project.machine.unmount()
  }
}
