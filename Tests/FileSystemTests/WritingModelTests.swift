import BucketStore
import FileSystem
import Glibc
import PendingQueue
import Platform
import TestSupport
import Testing

/// Random changes of the tree beside a dictionary of what it must show, while the uploader comes by
/// whenever it likes, is held back, or starts anew.
@Suite struct WritingModelTests {
  private struct Model {
    var files: [ByteString: [UInt8]] = [:]
    var folders: Set<ByteString> = [""]

    func isFree(_ path: ByteString) -> Bool { files[path] == nil && !folders.contains(path) }

    func parent(_ path: ByteString) -> ByteString {
      let parts = path.split(at: ByteString.slash).dropLast()
      return ByteString(Array(parts.map(\.bytes).joined(separator: [ByteString.slash])))
    }

    func canHold(_ path: ByteString) -> Bool { folders.contains(parent(path)) }

    func isEmpty(_ folder: ByteString) -> Bool {
      !files.keys.contains { $0.hasPrefix(folder + "/") }
        && !folders.contains { $0.hasPrefix(folder + "/") }
    }

    mutating func renameFolder(_ folder: ByteString, to target: ByteString) {
      func moved(_ path: ByteString) -> ByteString {
        path == folder || path.hasPrefix(folder + "/")
          ? target + path.dropFirst(folder.count) : path
      }
      folders = Set(folders.map(moved))
      files = Dictionary(uniqueKeysWithValues: files.map { (moved($0.key), $0.value) })
    }
  }

  @Test(arguments: 1...24) func theTreeAndTheStoreHoldWhatWasWritten(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let maxAge: Span = Bool.random(using: &random) ? .zero : .seconds(60)
    let fixture = try TreeFixture(maxAge: maxAge, writing: true)
    fixture.store.createBucket("b")
    fixture.store.capabilities.pageSize = Int.random(in: 2...9, using: &random)
    var model = Model()
    var history: [String] = []
    for step in 0..<80 {
      do {
        history.append(try change(fixture, &model, &random))
        try compare(fixture, model)
      } catch {
        let told = (error as? Failure)?.message ?? "\(error)"
        Issue.record(
          "seed \(seed), step \(step): \(told)\n\(history.joined(separator: "\n"))"
        )
        return
      }
    }
    try fixture.goOnline()
    #expect(try fixture.drain() == .stored)
    try compare(fixture, model)
    #expect(fixture.keys() == model.files.keys.sorted(), "seed \(seed): \(history)")
    for (path, bytes) in model.files {
      #expect(fixture.store.bytes("b", path) == bytes, "seed \(seed): \(path): \(history)")
    }
    fixture.tree.listings.distrust()
    try compare(fixture, model)
  }

  private struct Difference: Error, CustomStringConvertible {
    let description: String
  }

  private func compare(_ fixture: TreeFixture, _ model: Model) throws {
    for folder in model.folders {
      let path = folder.isEmpty ? "b" : "b/" + folder
      let shown = try fixture.names(path)
      let below = (Array(model.files.keys) + Array(model.folders)).filter {
        !$0.isEmpty && model.parent($0) == folder
      }
      let expected = below.map { $0.split(at: ByteString.slash).last ?? $0 }.sorted()
      guard shown == expected else {
        throw Difference(description: "\(folder) shows \(shown) and not \(expected)")
      }
    }
    for (path, bytes) in model.files {
      let found = try fixture.contents("b/" + path)
      guard found == bytes else {
        throw Difference(description: "\(path) holds \(found) and not \(bytes)")
      }
    }
  }

  /// One change, of the tree and of the model.
  ///
  /// - Returns: what it was.
  private func change(
    _ fixture: TreeFixture, _ model: inout Model, _ random: inout SeededGenerator
  ) throws -> String {
    let names: [ByteString] = ["x", "y", "z", "d", "e", "d/x", "d/y", "d/e", "e/x", "d/e/x"]
    let path = names.randomElement(using: &random) ?? "x"
    let other = names.randomElement(using: &random) ?? "y"
    let action = Int.random(in: 0..<14, using: &random)
    switch action {
    case 0...3 where model.canHold(path) && !model.folders.contains(path):
      let bytes = random.bytes(Int.random(in: 0...20, using: &random))
      try fixture.put("b/" + path, bytes)
      model.files[path] = bytes
      return "put \(path)"
    case 4 where model.files[path] != nil:
      let handle = try open(fixture, path)
      defer { handle.close() }
      let bytes = random.bytes(5)
      try fixture.write(handle, bytes, at: Int64(model.files[path]?.count ?? 0))
      try fixture.tree.flush(handle, TreeFixture.slow)
      model.files[path]? += bytes
      return "append \(path)"
    case 5 where model.files[path] != nil:
      let size = Int.random(in: 0...10, using: &random)
      try fixture.set("b/" + path) { $0.size = Int64(size) }
      let old = model.files[path] ?? []
      model.files[path] =
        old.prefix(size) + [UInt8](repeating: 0, count: max(0, size - old.count))
      return "truncate \(path) to \(size)"
    case 6 where model.files[path] != nil:
      try fixture.remove("b/" + path)
      model.files[path] = nil
      return "remove \(path)"
    case 7...8
    where model.files[path] != nil && model.canHold(other) && !model.folders.contains(other):
      if path == other { return "" }
      try fixture.rename("b/" + path, to: "b/" + other)
      model.files[other] = model.files.removeValue(forKey: path)
      return "rename \(path) to \(other)"
    case 9 where model.canHold(path) && model.isFree(path):
      try fixture.makeFolder("b/" + path)
      model.folders.insert(path)
      return "mkdir \(path)"
    case 10 where model.folders.contains(path):
      let errno = fixture.errno { try fixture.removeFolder("b/" + path) }
      guard errno == (model.isEmpty(path) ? nil : .notEmpty) else {
        throw Difference(description: "rmdir \(path): \(String(describing: errno))")
      }
      if errno == nil { model.folders.remove(path) }
      return "rmdir \(path)"
    case 11 where model.folders.contains(path) && model.canHold(other) && model.isFree(other):
      if other.hasPrefix(path + "/") { return "" }
      let errno = fixture.errno { try fixture.rename("b/" + path, to: "b/" + other) }
      guard errno == nil || errno == .crossDevice else {
        throw Difference(description: "rename \(path): \(String(describing: errno))")
      }
      if errno == nil { model.renameFolder(path, to: other) }
      return "rename folder \(path) to \(other): \(errno == nil)"
    case 12:
      if Bool.random(using: &random) {
        fixture.hold()
        return "hold"
      }
      try fixture.goOnline()
      if Bool.random(using: &random) { _ = try fixture.drain() }
      return "send"
    case 13:
      if Bool.random(using: &random) { try fixture.remount() }
      fixture.tree.listings.distrust()
      return "look anew"
    default: return ""
    }
  }

  private func open(_ fixture: TreeFixture, _ path: ByteString) throws -> FileHandle {
    do {
      return try fixture.tree.open(
        fixture.inode("b/" + path), flags: O_WRONLY | O_APPEND, TreeFixture.slow)
    } catch let failure as Failure where failure.errno == Errno(ESTALE) {
      return try fixture.tree.open(
        fixture.inode("b/" + path), flags: O_WRONLY | O_APPEND, TreeFixture.slow)
    }
  }
}
